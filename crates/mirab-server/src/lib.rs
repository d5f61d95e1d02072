//! The host: clock, store, gate, HTTP, engines.
