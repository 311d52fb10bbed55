// Text of the label that goes on every parcel.

export interface Parcel {
  order: string;
  part: number;
  parts: number;
  weightKg: number;
}

/** Above this weight the label says that two people have to lift. */
export const TWO_PERSON_WEIGHT_KG = 25;

export function labelLines(parcel: Parcel): string[] {
  const lines = [`Order ${parcel.order}`, `Part ${parcel.part} of ${parcel.parts}`, `${parcel.weightKg.toFixed(1)} kg`];
  if (parcel.weightKg > TWO_PERSON_WEIGHT_KG) {
    lines.push("LIFT WITH TWO PEOPLE");
  }
  return lines;
}
