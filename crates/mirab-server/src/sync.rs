//! Locks, channels and threads of the modules where threads meet: `host` and `wakers`. The model checker (`tests/model`) compiles those
//! very files with primitives of its own in this place, which try one order of events after the other.
pub(crate) use std::sync::{Mutex, MutexGuard, mpsc};
pub(crate) use std::thread;
