//! The thread that commits, so that no event loop waits for a disk.
use super::{Entry, TaskJournal, TaskStoreError};
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// So many entries go into one commit at most: it is not to last too long.
const MOST: usize = 10_000;

/// What to do once a commit is on the disk, or has failed: then nothing of it is stored, and nothing after it will be.
type Then = Box<dyn FnOnce(Result<(), Arc<TaskStoreError>>) + Send>;

struct Job {
    entries: Vec<Entry>,
    then: Then,
}

/// Commits what it is given, in order, from a thread of its own: what has gathered during one commit goes into the next.
///
/// The first commit that fails is the last one: whoever waits is told so, and so is whoever comes after. A scheduler that goes on from
/// decisions that were not stored would promise what a restart does not keep; it is to be started again from the file.
pub struct TaskWriter {
    jobs: Option<Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TaskWriter {
    /// Takes the journal over.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(journal: TaskJournal) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new().name("mirab-store".into()).spawn(move || write(journal, &queue))?;
        Ok(Self { jobs: Some(jobs), thread: Mutex::new(Some(thread)) })
    }

    /// Commits the entries together, then calls `then`, on the writer's thread: it must not wait for long.
    pub fn put(&self, entries: Vec<Entry>, then: impl FnOnce(Result<(), Arc<TaskStoreError>>) + Send + 'static) {
        let job = Job { entries, then: Box::new(then) };
        if let Some(jobs) = &self.jobs {
            // The thread ends with this end of its queue only.
            let _ = jobs.send(job);
        }
    }
}

/// Waits until all that was put is committed, and closes the file: then another scheduler can open it.
impl Drop for TaskWriter {
    fn drop(&mut self) {
        self.jobs = None;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last to let go may be what a commit called: the thread does not wait for itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TaskWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWriter").finish_non_exhaustive()
    }
}

fn write(mut journal: TaskJournal, queue: &Receiver<Job>) {
    let mut failed: Option<Arc<TaskStoreError>> = None;
    while let Ok(first) = queue.recv() {
        let mut size = first.entries.len();
        let mut group = vec![first];
        while size < MOST
            && let Ok(next) = queue.try_recv()
        {
            size += next.entries.len();
            group.push(next);
        }
        if failed.is_none() && size > 0 {
            failed = journal.commit(group.iter().flat_map(|job| &job.entries)).err().map(Arc::new);
        }
        for job in group {
            (job.then)(failed.clone().map_or(Ok(()), Err));
        }
    }
}
