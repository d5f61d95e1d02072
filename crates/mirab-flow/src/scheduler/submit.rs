//! Tasks come and join the line.
use super::error::TaskError;
use super::record::{More, Record, Shape, Stage};
use super::spec::{Admission, On, Submitted, TaskEffect, TaskEnd, TaskId, TaskSpec, TaskStart, What};
use super::timing::Alarm;
use super::{TaskMachine, limits};
use mirab_core::{Gate, Refusal, Start, Submission, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bits of a task's id below its shard's number.
const SHARD_SHIFT: u32 = 56;

impl TaskMachine {
    /// Accepts a task; it may start in this very step.
    ///
    /// # Errors
    /// `UnknownPool`, `UnknownResource`, `ResourceExceedsCapacity`, `InvalidResource`, `ResourceOnOtherShard`, `QueueFull`, `KeyConflict`,
    /// and `UnknownTask` for one that it is to come after. Then nothing has changed.
    pub fn submit(&mut self, now: Time, spec: &TaskSpec, admission: Admission) -> Result<Submitted, TaskError> {
        let shape = self.shape(spec)?;
        if let Some(id) = admission.key.as_deref().and_then(|key| self.keys.get(key)).copied() {
            return self.again(id, &shape, &admission);
        }
        self.check_room(&spec.pool)?;
        let (open, broken) = self.look_at(&admission.after)?;
        let is_early = admission.not_before.is_some_and(|at| at > now);
        let is_late = admission.start_by.is_some_and(|at| at <= now);
        let id = TaskId(u64::from(self.options.shard_number) << SHARD_SHIFT | self.next_id);
        let joins_now = open == 0 && broken.is_none() && !is_early && !is_late;
        let Admission { priority, key, digest, not_before, start_by, after } = admission;
        let key = key.map(|key| (Arc::<str>::from(key), digest));
        let mut record = Record {
            shape,
            stage: Stage::Blocked(open),
            priority,
            attempts: 0,
            place: None,
            not_before,
            start_by,
            deadline: None,
            more: self.more(key.clone(), &after),
        };
        if joins_now {
            line_up(&mut self.gate, now, id, &mut record)?;
        } else {
            self.check_needs(&record.shape)?;
        }
        if let Some(pool) = self.pools.get_mut(spec.pool.as_str()) {
            pool.queued += 1;
        }
        self.tasks.insert(id, record);
        self.next_id += 1;
        self.counts.submitted += 1;
        if let Some((key, _)) = key {
            self.keys.insert(key, id);
        }
        self.note_new(id);
        self.tell(now, id, What::Submitted);
        self.settle_in(now, id, &after, broken, is_late);
        self.drain(now);
        Ok(Submitted { id, is_new: true })
    }

    fn more(&self, key: Option<(Arc<str>, u64)>, after: &[(TaskId, On)]) -> Option<Box<More>> {
        let after = if self.options.durable { after.to_vec() } else { Vec::new() };
        (key.is_some() || !after.is_empty()).then(|| Box::new(More { key, after, ..More::default() }))
    }

    /// What is left to do for a task that was accepted.
    fn settle_in(&mut self, now: Time, id: TaskId, after: &[(TaskId, On)], broken: Option<String>, is_late: bool) {
        if let Some(reason) = broken {
            return self.end(now, id, TaskEnd::Skipped { reason });
        }
        if is_late {
            return self.end(now, id, TaskEnd::Expired);
        }
        for &(earlier, on) in after {
            if let Some(record) = self.tasks.get_mut(earlier) {
                record.more.get_or_insert_default().dependants.push((id, on));
            }
        }
        let Some(record) = self.tasks.get(id) else { return };
        if let Some(at) = record.start_by {
            self.alarms.insert((at, id, Alarm::Expire));
        }
        match record.stage {
            Stage::Blocked(0) => self.unblock(now, id),
            Stage::Queued(_) => self.tell(now, id, What::Queued),
            _ => {}
        }
    }

    /// The last task that it was to come after has ended well: it joins the line, or waits for its time.
    pub(super) fn unblock(&mut self, now: Time, id: TaskId) {
        let Some(record) = self.tasks.get_mut(id) else { return };
        match record.not_before.filter(|at| *at > now) {
            Some(at) => {
                record.stage = Stage::Due(at);
                self.alarms.insert((at, id, Alarm::Due));
                self.note(id);
            }
            None => self.fall_due(now, id),
        }
    }

    /// Puts a task in line; with the place it had before, if any.
    pub(super) fn join(&mut self, now: Time, id: TaskId) -> Result<(), Refusal> {
        let Some(record) = self.tasks.get_mut(id) else { return Ok(()) };
        line_up(&mut self.gate, now, id, record)?;
        self.note(id);
        Ok(())
    }

    /// Takes over what the gate has started and refused.
    pub(super) fn drain(&mut self, now: Time) {
        while let Some((claim, refusal)) = self.gate.poll_refused() {
            self.end(now, TaskId(claim.0), TaskEnd::Failed { message: refusal.to_string(), timed_out: false });
        }
        while let Some((claim, resource)) = self.gate.poll_delayed() {
            self.note_delay(TaskId(claim.0), &resource);
        }
        while let Some(start) = self.gate.poll_start() {
            self.started(&start);
        }
    }

    fn started(&mut self, start: &Start) {
        let id = TaskId(start.id.0);
        let Some(record) = self.tasks.get_mut(id) else { return };
        if let Some(at) = record.start_by.take() {
            self.alarms.remove(&(at, id, Alarm::Expire));
        }
        let since = if let Stage::Queued(since) = record.stage { since } else { start.at };
        record.stage = Stage::Running(start.fence);
        record.attempts += 1;
        record.deadline = record.shape.spec.timeout.map(|timeout| start.at.plus(timeout));
        if let Some(deadline) = record.deadline {
            self.alarms.insert((deadline, id, Alarm::Timeout));
        }
        let (attempt, deadline, shape) = (record.attempts, record.deadline, Arc::clone(&record.shape));
        let waited = start.at.since(since);
        self.count_start(&shape, waited);
        self.note_start(id, &shape);
        self.counts.started += 1;
        self.effects.push_back(TaskEffect::Start(TaskStart {
            id,
            attempt,
            fence: start.fence,
            at: start.at,
            deadline,
        }));
        self.tell(start.at, id, What::Started { attempt, waited });
    }

    /// The task of an earlier submission with the same key, if it asked for the same.
    fn again(&self, id: TaskId, shape: &Arc<Shape>, admission: &Admission) -> Result<Submitted, TaskError> {
        let live = self.tasks.get(id).and_then(|record| Some((&record.shape, record.key()?.1)));
        let ended =
            || self.ended.get(id).and_then(|ended| ended.keyed.as_ref()).map(|keyed| (&keyed.shape, keyed.digest));
        // A key is there as long as its task is.
        let Some((theirs, digest)) = live.or_else(ended) else { return Err(TaskError::UnknownTask(id)) };
        // Priority and times may have changed since: they make no other task.
        let differs = match (theirs.spec == shape.spec, digest == admission.digest) {
            (true, true) if self.is_circle(id, &admission.after) => "what it comes after, which would be a circle",
            (true, true) => return Ok(Submitted { id, is_new: false }),
            (false, _) => "pool, kind, resources, tags, timeout or retries",
            (true, false) => "payload",
        };
        Err(TaskError::KeyConflict { key: admission.key.clone().unwrap_or_default(), id, differs })
    }

    /// True when one of `after` is `id`, or comes after it.
    fn is_circle(&self, id: TaskId, after: &[(TaskId, On)]) -> bool {
        let (mut seen, mut open) = (BTreeSet::from([id]), vec![id]);
        while let Some(id) = open.pop().filter(|_| !after.is_empty()) {
            if after.iter().any(|(earlier, _)| *earlier == id) {
                return true;
            }
            let more = self.tasks.get(id).and_then(|record| record.more.as_ref());
            let later = more.iter().flat_map(|more| &more.dependants).map(|(later, _)| *later);
            open.extend(later.filter(|later| seen.insert(*later)));
        }
        false
    }

    /// How many of those that it comes after have not ended, and why it can never start, if so.
    fn look_at(&self, after: &[(TaskId, On)]) -> Result<(u32, Option<String>), TaskError> {
        let (mut open, mut broken) = (0, None);
        for &(id, on) in after {
            match (self.tasks.contains(id), self.ended.get(id)) {
                (true, _) => open += 1,
                (false, Some(ended)) => broken = broken.or_else(|| limits::is_broken(id, on, &ended.end)),
                (false, None) => return Err(TaskError::UnknownTask(id)),
            }
        }
        Ok((open, broken))
    }

    /// What alike tasks have in common, checked as far as it does not depend on limits.
    pub(super) fn shape(&mut self, spec: &TaskSpec) -> Result<Arc<Shape>, TaskError> {
        if let Some(shape) = self.shapes.get(spec) {
            return Ok(shape);
        }
        if !self.pools.contains_key(spec.pool.as_str()) {
            return Err(self.unknown_pool(&spec.pool));
        }
        Ok(self.shapes.insert(Shape::new(spec)?))
    }

    fn check_needs(&self, shape: &Shape) -> Result<(), Refusal> {
        let needs: Vec<(&str, u64)> = shape.needs.iter().map(|(name, units)| (name.as_str(), *units)).collect();
        self.gate.check_needs(&needs, None)
    }
}

/// Needs that are told the gate without asking for memory.
const FEW: usize = 4;

/// Puts a task in the line of the gate.
fn line_up(gate: &mut Gate, now: Time, id: TaskId, record: &mut Record) -> Result<(), Refusal> {
    let shape = &record.shape;
    let own = || shape.needs.iter().map(|(name, units)| (name.as_str(), *units));
    let mut few = [("", 0); FEW];
    let many: Vec<(&str, u64)>;
    let needs = if shape.tags.is_empty() && shape.needs.len() <= FEW {
        own().zip(&mut few).for_each(|(need, place)| *place = need);
        &few[..shape.needs.len()]
    } else {
        let tags = shape.tags.iter().filter(|tag| gate.is_declared(tag)).map(|tag| (tag.as_str(), 1));
        many = own().chain(tags).collect();
        &many[..]
    };
    let (priority, place) = (record.priority, record.place);
    let claim = Submission { id: id.claim(), kind: &shape.kind, needs, priority, parent: None, place };
    record.place = Some(gate.submit(now, claim)?);
    record.stage = Stage::Queued(now);
    Ok(())
}
