//! Child processes: their exit as a file descriptor, their groups, and how to tell one from a later one with the same id.
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A descriptor that becomes readable when the process has ended.
pub(crate) fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = as_pid(pid).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    // The kernel sets close-on-exec by itself.
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits until the process has ended; false when it still lives after `limit`.
pub(crate) fn wait_for_exit(pidfd: impl AsFd, limit: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// One process for good: its id alone may be given to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessId {
    pub pid: u32,
    pub start_time: u64,
}

/// Sends a signal to the group that a process leads; nothing happens when none is left. The process must not have been reaped.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = as_pid(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// The same for a leader that may be gone: not when its id is another process's by now. While anything is left of the group, the
/// system gives the id to no one else.
pub(crate) fn signal_group_of(leader: &ProcessId, signal: Signal) {
    if start_time(leader.pid).is_none_or(|started| started == leader.start_time) {
        signal_group(leader.pid, signal);
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// How a child that has ended did so; it is still to be reaped.
pub(crate) fn peek_exit(child: u32) -> Option<Exit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(as_pid(child)?), options).ok()??;
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// When the process started, in clock ticks since boot: together with its id it names one process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces and parentheses itself; field 3 follows the last one, field 22 is wanted.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// How a process ended, in words.
pub(crate) fn describe_exit(exit: Option<Exit>) -> String {
    match exit {
        // Only the parent is told how a process ended.
        None => "engine process ended (an earlier server started it, so how is not known)".into(),
        Some(Exit::Signal(signal)) => format!("engine process ended by signal {signal}"),
        Some(Exit::Code(code)) => format!("engine process ended with exit code {code}"),
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn the_end_of_a_killed_group_is_seen() {
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let pidfd = open_pidfd(child.id()).unwrap();
        assert!(start_time(child.id()).is_some());
        assert!(!wait_for_exit(&pidfd, Duration::ZERO).unwrap());
        let process = ProcessId { pid: child.id(), start_time: start_time(child.id()).unwrap() };
        // Not for an earlier process of the same id.
        signal_group_of(&ProcessId { start_time: process.start_time - 1, ..process }, Signal::KILL);
        assert_eq!((wait_for_exit(&pidfd, Duration::ZERO).unwrap(), peek_exit(child.id())), (false, None));
        signal_group_of(&process, Signal::KILL);
        assert!(wait_for_exit(&pidfd, Duration::from_secs(20)).unwrap());
        for _ in 0..2 {
            assert_eq!(describe_exit(peek_exit(child.id())), "engine process ended by signal 9");
        }
        child.wait().unwrap();
        assert_eq!(peek_exit(child.id()), None);
    }
}
