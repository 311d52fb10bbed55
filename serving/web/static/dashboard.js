"use strict";
// Everything works without this file; it makes some of it quicker.

// Choosing an order or page of a list in place would lose the position of the reader, so links stay links. `/` leads to the
// field for searches, as people know it from other pages.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector("input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// What could not be loaded is said where it would stand, until something is.
const trouble = (event, told) => {
  const place = event.detail.target;
  if (!place || document.getElementById("trouble")) return;
  const line = document.createElement("p");
  line.id = "trouble";
  line.className = "alert";
  line.setAttribute("role", "alert");
  line.textContent = told;
  place.before(line);
};
document.addEventListener("htmx:sendError", (event) => trouble(event, "The service cannot be reached; what you see is not up to date."));
document.addEventListener("htmx:responseError", (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  const detail = page.querySelector(".problem .detail");
  trouble(event, detail ? detail.textContent : `The service answered with status ${event.detail.xhr.status}.`);
});
document.addEventListener("htmx:afterSwap", () => document.getElementById("trouble")?.remove());

// A form that takes long says so, and is not sent twice.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", (event) => {
    // A script sends it in another way.
    if (event.defaultPrevented) return;
    const button = form.querySelector("button");
    button.disabled = true;
    button.textContent = form.dataset.busy;
  });
}
