//! Child processes: their exit as a file descriptor, their groups, and how to tell one from a later one with the same id.
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
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

/// Sends a signal to the group that a process leads; nothing happens when none is left.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = as_pid(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// When the process started, in clock ticks since boot: together with its id it names one process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces and parentheses itself; field 3 follows the last one, field 22 is wanted.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// How a process ended, in words.
pub(crate) fn describe_exit(status: Option<ExitStatus>) -> String {
    match status {
        // Only the parent is told how a process ended.
        None => "engine process ended (an earlier server started it, so how is not known)".into(),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("engine process ended by signal {signal}"),
            (None, code) => format!("engine process ended with exit code {}", code.unwrap_or_default()),
        },
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
        signal_group(child.id(), Signal::KILL);
        assert!(wait_for_exit(&pidfd, Duration::from_secs(20)).unwrap());
        assert_eq!(describe_exit(child.wait().ok()), "engine process ended by signal 9");
    }
}
