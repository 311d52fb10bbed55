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
