(function () {
  "use strict";
  function read(id) { return JSON.parse(document.getElementById(id).textContent); }
  var touch = window.matchMedia("(pointer: coarse)").matches;
  var timeline = read("timeline-json"), checkpoints = read("checkpoint-json");
  // a finger that drags over a chart scrolls the page
  if (touch) { timeline.layout.dragmode = false; }
  var bar = ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"];
  timeline.config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: bar };
  checkpoints.config = { responsive: true, displaylogo: false, displayModeBar: false };
  var left = document.getElementById("timeline-figure");
  var right = document.getElementById("checkpoint-figure");
  var frames = (checkpoints.frames || []).map(function (frame) { return Number(frame.name); });
  Plotly.newPlot(left, timeline).then(function () {
    left.on("plotly_click", function (event) {
      var data = event.points[0] && event.points[0].customdata;
      if (!data || !frames.length) { return; }
      var nearest = frames.reduce(function (best, step) {
        return Math.abs(step - data[0]) < Math.abs(best - data[0]) ? step : best;
      });
      Plotly.animate(right, [String(nearest)], {
        mode: "immediate", frame: { duration: 0, redraw: false }, transition: { duration: 0 }
      });
    });
  });
  Plotly.newPlot(right, checkpoints);
})();
