//! The Python module mirab._native.
