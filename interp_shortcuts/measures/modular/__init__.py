"""Measures of networks trained under label noise, most of them on modular arithmetic."""
