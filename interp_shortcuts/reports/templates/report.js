(function () {
  "use strict";
  var touch = window.matchMedia("(pointer: coarse)").matches;
  var bar = ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"];
  var texts = {};
  document.querySelectorAll("script[data-figure]").forEach(function (script) {
    texts[script.dataset.figure] = script.textContent;
  });
  var checkpoint = document.getElementById("checkpoint-figure"), frames = [];
  function draw(place) {
    var figure = JSON.parse(texts[place.id]), still = !figure.layout.updatemenus;
    // a finger that drags over a chart scrolls the page
    if (touch) { figure.layout.dragmode = false; }
    if (place === checkpoint) {
      frames = (figure.frames || []).map(function (frame) { return Number(frame.name); });
    }
    figure.config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: bar };
    if (still || figure.frames && figure.frames.length) { figure.config.displayModeBar = false; }
    Plotly.newPlot(place, figure).then(function () {
      if (place !== checkpoint) { place.on("plotly_click", follow); }
    });
  }
  // a click on a point moves the slider of the checkpoints to that step
  function follow(event) {
    var data = event.points[0] && event.points[0].customdata;
    if (!data || !frames.length) { return; }
    var nearest = frames.reduce(function (best, step) {
      return Math.abs(step - data[0]) < Math.abs(best - data[0]) ? step : best;
    });
    Plotly.animate(checkpoint, [String(nearest)], {
      mode: "immediate", frame: { duration: 0, redraw: false }, transition: { duration: 0 }
    });
  }
  // the other pictures are drawn as they come near the window, so that the page opens at once
  var watcher = new IntersectionObserver(function (seen) {
    seen.forEach(function (entry) {
      if (!entry.isIntersecting) { return; }
      watcher.unobserve(entry.target);
      if (!entry.target.data) { draw(entry.target); }
    });
  }, { rootMargin: "900px" });
  var places = document.querySelectorAll(".figure");
  draw(document.getElementById("timeline-figure"));
  draw(checkpoint);
  places.forEach(function (place) { if (!place.data) { watcher.observe(place); } });
  window.addEventListener("beforeprint", function () {
    places.forEach(function (place) { if (!place.data) { draw(place); } });
  });
})();
