//! Typed HTTP client and the worker runtime.
