//! The mirab command.
