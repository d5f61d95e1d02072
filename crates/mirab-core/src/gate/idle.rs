//! What nobody uses goes; what is likely to be used again soon is kept for a while.
use super::Gate;
use super::class::ClassIx;
use super::resource::ResourceIx;

/// So many classes in which nobody waits are kept: making one anew costs more than all else that a start does.
const KEPT: usize = 4_096;

impl Gate {
    /// Nobody waits in a class any more.
    pub(super) fn emptied(&mut self, at: ClassIx) {
        self.count_live(at, false);
        let class = &self.classes[at];
        let declared = |resource: ResourceIx| self.declared[self.resources[resource].declared].is_name();
        let is_common = class.key.parent.is_none() && class.key.needs.iter().all(|(resource, _)| declared(*resource));
        if !is_common {
            self.remove_class(at);
            return;
        }
        if !std::mem::replace(&mut self.classes[at].kept, true) {
            self.kept.push_back(at);
        }
        if self.kept.len() > KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.classes[oldest].kept = false;
            if self.classes[oldest].queue.is_empty() {
                self.remove_class(oldest);
            }
        }
    }

    /// Removes the classes that ask for a resource, in none of which anybody waits.
    pub(super) fn remove_kept(&mut self, resource: ResourceIx) {
        for class in self.classes_on(resource) {
            self.kept.retain(|kept| *kept != class);
            self.remove_class(class);
        }
    }

    /// A class has its first waiter, or has lost its last.
    pub(super) fn count_live(&mut self, class: ClassIx, on: bool) {
        let Self { classes, resources, .. } = self;
        for &(resource, units) in &classes[class].key.needs {
            let line = resources[resource].line.as_mut();
            if let Some(shelf) = line.and_then(|line| line.shelf_mut(units)) {
                shelf.live = if on { shelf.live + 1 } else { shelf.live - 1 };
            }
        }
    }

    /// Removes the instances whose instant has come.
    pub(super) fn reap_idle(&mut self) {
        while let Some(&(at, resource)) = self.idle.first()
            && at <= self.now
        {
            self.idle.pop_first();
            self.reap(resource);
        }
    }

    /// Removes an instance of a pattern that nobody uses: a bucket once it is full again, for then it is as good as a new one.
    pub(super) fn reap(&mut self, at: ResourceIx) {
        let Some(resource) = self.resources.get(at) else { return };
        if !resource.is_unused() || self.declared[resource.declared].is_name() {
            return;
        }
        if let Some(bucket) = resource.bucket().filter(|bucket| !bucket.is_full(self.now)) {
            let full_at = bucket.time_of(bucket.burst(), self.now).unwrap_or(self.now);
            // At the end of time it is never full.
            self.idle.extend((full_at > self.now).then_some((full_at, at)));
            return;
        }
        if let Some(gone) = self.resources.remove(at) {
            self.by_name.remove(&*gone.name);
        }
    }
}
