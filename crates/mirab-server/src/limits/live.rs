//! Changes while the server runs.
use super::difference::Difference;
use super::files::{Files, Looks, QUIET_LOOKS, take_back};
use super::wanted::{EditError, Wanted};
use crate::catalog::{self, Catalog};
use crate::config::Declarations;
use crate::host::Host;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// How often the files are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The files with declarations, and how they are changed; clones share it.
#[derive(Clone)]
pub(crate) struct Limits {
    host: Host,
    catalog: Arc<RwLock<Catalog>>,
    home: PathBuf,
    /// One change at a time.
    editing: Arc<Mutex<()>>,
    /// Why the files do not count as they are.
    trouble: Arc<std::sync::Mutex<Option<String>>>,
}

impl Limits {
    pub fn new(host: Host, catalog: Arc<RwLock<Catalog>>, home: PathBuf) -> Self {
        Self { host, catalog, home, editing: Arc::default(), trouble: Arc::default() }
    }

    /// What is wrong with an edit by hand that does not count for that; `None` when all files count.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a change in the files and for the work. It goes on when the caller does not wait for the answer.
    pub async fn change(&self, wanted: Wanted) -> Result<(), EditError> {
        let this = self.clone();
        let change = tokio::spawn(async move { this.change_alone(wanted).await });
        change.await.unwrap_or_else(|error| Err(EditError::Config(error.to_string())))
    }

    async fn change_alone(&self, wanted: Wanted) -> Result<(), EditError> {
        let _one_at_a_time = self.editing.lock().await;
        let name = wanted.name().to_owned();
        // Asked first, so that a file is seldom written in vain.
        let removal = self.host.query(move |orchestrator, _| orchestrator.check_removal(&name));
        let removal = removal.await.map_err(EditError::Store)?;
        let known = catalog::read(&self.catalog).declarations().clone();
        let declared = known.get(wanted.name());
        let edit = wanted.edit(declared, removal)?;
        let name = edit.name().to_owned();
        let (files, before) = (self.files(), known.clone());
        let (rewrites, declarations) = blocking(move || files.write(&edit, &before)).await?;
        // What was edited by hand meanwhile is taken over with it; what is missing may be in the middle of being written.
        let told = self.take_over(&known, declarations.with_missing_of(&known, &name)).await;
        if told.is_err() {
            take_back(rewrites);
        }
        told
    }

    fn files(&self) -> Files {
        let catalog = catalog::read(&self.catalog);
        Files::new(catalog.projects().map(|project| project.dir.clone()), &self.home)
    }

    /// Takes over what was edited by hand since: all changes in one step. A file that cannot be used changes nothing, and what takes names
    /// away counts once the files are settled: an editor may have emptied one before it writes it.
    async fn reload(&self, are_settled: bool) -> Result<(), EditError> {
        let _one_at_a_time = self.editing.lock().await;
        let files = self.files();
        let declarations = blocking(move || files.read()).await?;
        let known = catalog::read(&self.catalog).declarations().clone();
        if !are_settled {
            check_complete(&known, &declarations)?;
        }
        self.take_over(&known, declarations).await
    }

    /// Makes what the files declare count for the work: all that is new or changed, and what is gone, in one step.
    async fn take_over(&self, known: &Declarations, declarations: Declarations) -> Result<(), EditError> {
        let difference = Difference::between(known, &declarations);
        let made = self.host.call(move |orchestrator, now| difference.make(orchestrator, now)).await;
        made.map_err(EditError::Store)?.map_err(EditError::Refused)?;
        catalog::write(&self.catalog).set_declarations(declarations);
        Ok(())
    }

    /// Looks at the files again and again, until the server ends: an edit by hand counts within about a second, one that takes names away
    /// after some more.
    pub async fn watch(self, mut stopping: tokio::sync::watch::Receiver<bool>) {
        let (mut looks, mut is_first) = (Looks::default(), true);
        let mut ticks = tokio::time::interval(LOOK_AGAIN);
        loop {
            tokio::select! {
                _ = stopping.changed() => return,
                _ = ticks.tick() => {}
            }
            let stamps = self.files().stamps();
            if !looks.is_news(&stamps) {
                continue;
            }
            let read = self.reload(looks.are_settled()).await;
            self.note(&read, std::mem::take(&mut is_first));
            // What is refused for now, as a name that is still held, is tried again; a file that cannot be used waits for its next edit.
            if !matches!(read, Err(EditError::Refused(_) | EditError::Store(_) | EditError::Unsettled(_))) {
                looks.taken_over(stamps);
            }
        }
    }

    /// Tells the log and whoever asks for the server's health, each trouble once.
    fn note(&self, read: &Result<(), EditError>, is_first: bool) {
        let told = read.as_ref().err().map(|error| format!("limits stay as they were: {}", error.told()));
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &told {
            None if !is_first => tracing::info!("limits were read again"),
            Some(why) if *trouble != told && matches!(read, Err(EditError::Unsettled(_))) => tracing::info!("{why}"),
            Some(why) if *trouble != told => tracing::error!("{why}"),
            _ => {}
        }
        *trouble = told;
    }
}

/// Does every name that is in force stand in the files?
fn check_complete(known: &Declarations, declarations: &Declarations) -> Result<(), EditError> {
    let mut missing = known.iter().filter(|old| declarations.get(&old.config.name).is_none());
    let Some(first) = missing.next() else { return Ok(()) };
    let others = match missing.count() {
        0 => " stands".into(),
        1 => " and 1 other stand".into(),
        others => format!(" and {others} others stand"),
    };
    let (name, file, wait) = (&first.config.name, &first.place.file, LOOK_AGAIN * QUIET_LOOKS);
    Err(EditError::Unsettled(format!(
        "{name:?}{others} in {file} no more: that counts once the files have not changed for {} s",
        wait.as_secs()
    )))
}

/// Off the async threads.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, EditError> + Send + 'static,
) -> Result<R, EditError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(EditError::Config(error.to_string())))
}
