// Price of a made-to-measure table for the web shop, in euros. The office checks every offer above 6,000.

const TIMBER_PER_M3 = { oak: 2150, ash: 1680, walnut: 5400, cherry: 3900 };
const HOURLY_RATE = 68;

/** Surcharge for tables that do not fit through a door of 80 cm and are delivered in two parts. */
const SPLIT_TOP_SURCHARGE = 340;

export function quote({ species, length, width, thickness = 0.04, oiled = true }) {
  const timber = TIMBER_PER_M3[species];
  if (timber === undefined) {
    throw new RangeError(`no price for ${species}; known: ${Object.keys(TIMBER_PER_M3).join(", ")}`);
  }
  const volume = length * width * thickness * 1.6; // planing and offcuts take 60 percent
  const hours = 9 + length * width * 4.5 + (oiled ? 2 : 5);
  const split = length > 2.6 ? SPLIT_TOP_SURCHARGE : 0;
  return Math.round(volume * timber + hours * HOURLY_RATE + split);
}
