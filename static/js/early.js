// Runs before the page is drawn, so that what only works with a script never flashes.
document.documentElement.classList.add("js");
