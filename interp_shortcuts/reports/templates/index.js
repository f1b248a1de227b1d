(function () {
  "use strict";
  var texts = {};
  document.querySelectorAll("script[data-plot]").forEach(function (script) {
    texts[script.dataset.plot] = script.textContent;
  });
  function draw(place) {
    var figure = JSON.parse(texts[place.id]);
    figure.config = { responsive: true, displayModeBar: false };
    Plotly.newPlot(place, figure);
  }
  // pictures are drawn as they come near the window, so that a page of many seeds opens at once
  var watcher = new IntersectionObserver(function (seen) {
    seen.forEach(function (entry) {
      if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
    });
  }, { rootMargin: "600px" });
  var places = document.querySelectorAll(".plot");
  places.forEach(function (place) { watcher.observe(place); });
  window.addEventListener("beforeprint", function () {
    places.forEach(function (place) { if (!place.data) { draw(place); } });
  });
})();
