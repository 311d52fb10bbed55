"use strict";
// The map: points on a canvas. Its clusters and chosen areas are lists of the page, which need none of this.

const frame = document.querySelector(".map");
if (frame) {
  document.documentElement.classList.add("scripted");
  const canvas = document.getElementById("map");
  // Its pixels are made here, so they stay in memory.
  const paper = canvas.getContext("2d", { willReadFrequently: true });
  const card = document.getElementById("map-card");
  const status = document.getElementById("map-status");
  const legend = document.getElementById("map-legend");
  const colour = document.getElementById("map-colour");
  const selector = document.getElementById("map-select");
  const COLOURS = 12;
  const CELLS = 128;
  const MARGIN = 24;
  const OPACITY = 0.85;
  let points = null;
  let view = { left: 0, top: 0, size: 1 };
  let selecting = false;
  let held = null;
  let chosen = null;
  let over = -1;
  let asked = 0;
  let waiting = 0;
  let picture = null;
  let stale = true;

  // The answer is the length of its head in four bytes, the head in JSON, and a column after the other.
  const read = (buffer) => {
    const length = new DataView(buffer).getUint32(0, true);
    const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const column = (number) => new Uint16Array(buffer, 4 + length + 2 * told.count * number, told.count);
    const names = { source: told.sources, type: told.types, cluster: [] };
    for (const link of document.querySelectorAll("[data-cluster]")) names.cluster[Number(link.dataset.cluster)] = link.textContent;
    const ids = new Uint8Array(buffer, 4 + length + 10 * told.count, 16 * told.count);
    const all = { ...told, names, ids, x: column(0), y: column(1), source: column(2), type: column(3), cluster: column(4) };
    return { ...all, ...sorted(all) };
  };

  // Points by the cell of a grid that they are in, so that the one under the pointer is found at once: those of a cell
  // stand from `begins[cell]` to `begins[cell + 1]`.
  const cellOf = (place) => Math.min(CELLS - 1, Math.floor((place / 65536) * CELLS));
  const sorted = ({ x, y, count }) => {
    const begins = new Uint32Array(CELLS * CELLS + 1);
    const cells = new Uint16Array(count);
    for (let each = 0; each < count; each += 1) {
      cells[each] = cellOf(x[each]) * CELLS + cellOf(y[each]);
      begins[cells[each] + 1] += 1;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell += 1) begins[cell + 1] += begins[cell];
    const next = begins.slice();
    const order = new Uint32Array(count);
    for (let each = 0; each < count; each += 1) order[next[cells[each]]++] = each;
    return { begins, order };
  };

  const id = (each) => {
    const hex = [...points.ids.subarray(each * 16, each * 16 + 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };

  const extent = () => ({ width: canvas.clientWidth - 2 * MARGIN, height: canvas.clientHeight - 2 * MARGIN });
  const across = (x) => MARGIN + ((x - view.left) / view.size) * extent().width;
  const down = (y) => MARGIN + ((y - view.top) / view.size) * extent().height;
  const xOf = (each) => points.x[each] / 65535;
  const yOf = (each) => points.y[each] / 65535;
  const placeOf = (across_, down_) => ({
    x: view.left + ((across_ - MARGIN) / extent().width) * view.size,
    y: view.top + ((down_ - MARGIN) / extent().height) * view.size,
  });

  // Groups beyond the number of colours share them.
  const palette = () => {
    const style = getComputedStyle(document.documentElement);
    return Array.from({ length: COLOURS }, (_, each) => style.getPropertyValue(`--c${each}`).trim());
  };

  // Offsets and opacities of the pixels of a point.
  const stampOf = (radius, width) => {
    const [offsets, opacities] = [[], []];
    const reach = Math.ceil(radius);
    for (let row = -reach; row <= reach; row += 1) {
      for (let column = -reach; column <= reach; column += 1) {
        const covered = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(row, column)));
        if (covered < 0.1) continue;
        offsets.push(row * width + column);
        opacities.push(Math.round(255 * OPACITY * covered));
      }
    }
    return { offsets: Int32Array.from(offsets), opacities: Uint8Array.from(opacities), reach };
  };

  // Pixels are set one by one: a path of 50,000 circles takes many times longer.
  const paint = (width, height, ratio, radius) => {
    if (!picture || picture.width !== width || picture.height !== height) picture = paper.createImageData(width, height);
    const pixels = new Uint32Array(picture.data.buffer);
    pixels.fill(0);
    const { offsets, opacities, reach } = stampOf(radius * ratio, width);
    const shades = palette().map((shade) => parseInt(shade.slice(5, 7) + shade.slice(3, 5) + shade.slice(1, 3), 16));
    const group = points[colour.value];
    const [wide, high] = [(extent().width * ratio) / view.size, (extent().height * ratio) / view.size];
    const [left, top] = [MARGIN * ratio - view.left * wide, MARGIN * ratio - view.top * high];
    for (let each = 0; each < points.count; each += 1) {
      const x = Math.round(left + (points.x[each] / 65535) * wide);
      const y = Math.round(top + (points.y[each] / 65535) * high);
      if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
      const shade = shades[group[each] % COLOURS];
      const middle = y * width + x;
      for (let pixel = 0; pixel < offsets.length; pixel += 1) {
        const at = middle + offsets[pixel];
        if (pixels[at] >>> 24 <= opacities[pixel]) pixels[at] = ((opacities[pixel] << 24) | shade) >>> 0;
      }
    }
  };

  const draw = () => {
    waiting = 0;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      stale = true;
    }
    const radius = Math.max(1.1, Math.min(5, 70 / Math.sqrt(points.count + 1) + 0.25 / view.size));
    if (stale) paint(width, height, ratio, radius);
    stale = false;
    paper.putImageData(picture, 0, 0);
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = getComputedStyle(canvas).color;
    if (over >= 0) {
      paper.strokeStyle = ink;
      paper.lineWidth = 2;
      paper.beginPath();
      paper.arc(across(xOf(over)), down(yOf(over)), radius + 4, 0, 2 * Math.PI);
      paper.stroke();
    }
    if (chosen) {
      paper.strokeStyle = ink;
      paper.lineWidth = 1.5;
      paper.setLineDash([5, 4]);
      const left = across(chosen.left);
      const top = down(chosen.top);
      paper.strokeRect(left, top, across(chosen.right) - left, down(chosen.bottom) - top);
      paper.setLineDash([]);
    }
  };
  // What is over the points changes more often than the points.
  const redraw = () => { if (!waiting && points) waiting = requestAnimationFrame(draw); };
  const repaint = () => {
    stale = true;
    redraw();
  };

  const explain = () => {
    legend.replaceChildren();
    const names = points.names[colour.value];
    names.slice(0, COLOURS).forEach((name, each) => {
      const item = document.createElement("li");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [key, value] of [["width", "10"], ["height", "10"], ["aria-hidden", "true"]]) mark.setAttribute(key, value);
      for (const [key, value] of [["cx", "5"], ["cy", "5"], ["r", "5"], ["fill", palette()[each]]]) dot.setAttribute(key, value);
      mark.append(dot);
      item.append(mark, name || "None");
      legend.append(item);
    });
    if (names.length > COLOURS) {
      const item = document.createElement("li");
      item.textContent = `and ${names.length - COLOURS} more, in the same colours`;
      legend.append(item);
    }
  };

  const zoom = (factor, at = { x: view.left + view.size / 2, y: view.top + view.size / 2 }) => {
    const size = Math.min(1, Math.max(0.002, view.size * factor));
    const share = size / view.size;
    move({ left: at.x - (at.x - view.left) * share, top: at.y - (at.y - view.top) * share, size });
  };
  const move = (to) => {
    const most = 1 - to.size;
    view = { size: to.size, left: Math.min(most + 0.1, Math.max(-0.1, to.left)), top: Math.min(most + 0.1, Math.max(-0.1, to.top)) };
    if (view.size === 1) view = { left: 0, top: 0, size: 1 };
    repaint();
  };

  const nearest = (across_, down_) => {
    const [low, high] = [placeOf(across_ - 10, down_ - 10), placeOf(across_ + 10, down_ + 10)];
    const [left, top, right, bottom] = [low.x, low.y, high.x, high.y].map((side) => cellOf(65535 * Math.max(0, side)));
    let best = -1;
    let least = 10 * 10;
    for (let column = left; column <= right; column += 1) {
      for (let place = points.begins[column * CELLS + top]; place < points.begins[column * CELLS + bottom + 1]; place += 1) {
        const each = points.order[place];
        const far = (across(xOf(each)) - across_) ** 2 + (down(yOf(each)) - down_) ** 2;
        if (far < least) [best, least] = [each, far];
      }
    }
    return best;
  };

  const show = (each) => {
    if (each === over) return;
    over = each;
    canvas.classList.toggle("over", over >= 0);
    redraw();
    clearTimeout(asked);
    if (over < 0) {
      card.hidden = true;
      return;
    }
    asked = setTimeout(async () => {
      const answer = await fetch(`/map/documents/${id(each)}`);
      if (!answer.ok || over !== each) return;
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      card.replaceChildren(...part.body.children);
      card.hidden = false;
    }, 60);
  };

  const list = (area) => {
    const sides = [area.left, area.top, area.right, area.bottom].map((side) => Math.min(1, Math.max(0, side)).toFixed(4));
    location.assign(`/map?area=${sides.join(",")}#chosen`);
  };
  const spanned = (one, other) => ({
    left: Math.min(one.x, other.x), right: Math.max(one.x, other.x), top: Math.min(one.y, other.y), bottom: Math.max(one.y, other.y),
  });
  const select = (on) => {
    selecting = on;
    selector.setAttribute("aria-pressed", String(on));
    canvas.classList.toggle("selecting", on);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (!points) return;
    held = { across: event.offsetX, down: event.offsetY, view: { ...view }, moved: false, selecting: selecting || event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!points) return;
    if (!held) {
      show(nearest(event.offsetX, event.offsetY));
      return;
    }
    const [aside, below] = [event.offsetX - held.across, event.offsetY - held.down];
    if (Math.hypot(aside, below) > 4) held.moved = true;
    if (!held.moved) return;
    if (held.selecting) {
      chosen = spanned(placeOf(held.across, held.down), placeOf(event.offsetX, event.offsetY));
      redraw();
      return;
    }
    canvas.classList.add("moving");
    const { width, height } = extent();
    move({ size: view.size, left: held.view.left - (aside / width) * view.size, top: held.view.top - (below / height) * view.size });
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    const was = held;
    held = null;
    canvas.classList.remove("moving");
    if (was.moved && was.selecting) {
      select(false);
      list(chosen);
    } else if (!was.moved) {
      const each = nearest(event.offsetX, event.offsetY);
      if (each >= 0) location.assign(`/documents/${id(each)}`);
    }
  });
  canvas.addEventListener("pointerleave", () => { if (!held) show(-1); });
  canvas.addEventListener("wheel", (event) => {
    // A page that scrolls is not caught by the map; pinching, and turning the wheel with Control, zooms.
    if (!points || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, placeOf(event.offsetX, event.offsetY));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (!points) return;
    const step = view.size / 8;
    const steps = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in steps) move({ size: view.size, left: view.left + steps[event.key][0], top: view.top + steps[event.key][1] });
    else if (event.key === "+" || event.key === "=") zoom(0.6);
    else if (event.key === "-") zoom(1.7);
    else if (event.key === "Enter") list({ left: view.left, top: view.top, right: view.left + view.size, bottom: view.top + view.size });
    else return;
    event.preventDefault();
  });
  document.getElementById("map-in").addEventListener("click", () => zoom(0.6));
  document.getElementById("map-out").addEventListener("click", () => zoom(1.7));
  document.getElementById("map-all").addEventListener("click", () => move({ left: 0, top: 0, size: 1 }));
  selector.addEventListener("click", () => select(!selecting));
  colour.addEventListener("change", () => {
    explain();
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    explain();
    repaint();
  });
  new ResizeObserver(redraw).observe(canvas);

  const begin = async () => {
    const answer = await fetch(frame.dataset.points);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    points = read(await answer.arrayBuffer());
    const area = new URLSearchParams(location.search).get("area");
    if (area) {
      const [left, top, right, bottom] = area.split(",").map(Number);
      chosen = { left, top, right, bottom };
    }
    explain();
    redraw();
    const more = points.left_out ? `, ${points.left_out.toLocaleString("en")} more are not drawn` : "";
    status.textContent = `${points.count.toLocaleString("en")} documents${more}. Point at one for its name; click to open it. Control and the wheel zoom.`;
  };
  begin().catch(() => {
    status.setAttribute("role", "alert");
    status.textContent = "The points of the map cannot be loaded; try again later.";
  });
}
