//! Virtual time, the plain-list reference model, generators of histories.
