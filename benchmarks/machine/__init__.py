"""What the benchmarks ask of the machine."""
