//! The store: facts committed by one writer, read by many.
