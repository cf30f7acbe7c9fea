import { batchLimits } from "@herald/contracts";

/** A full batch takes so many, and the smallest one. */
export const unitsOfBatch = 64;

/**
 * How much of what may be sent at a time a batch of so many devices takes: one device costs the waits of a batch, but not its work,
 * so 64 single ones run where one full batch would.
 */
export const unitsOf = (devices: number): number =>
  Math.max(1, Math.ceil((unitsOfBatch * Math.min(devices, batchLimits.devices)) / batchLimits.devices));
