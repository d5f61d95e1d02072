//! The sans-IO gate: what may start now, what waits, in which order and why.
