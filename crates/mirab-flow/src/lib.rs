//! The life of work, sans-IO: runs, tasks, attempts, retries, overlap.
