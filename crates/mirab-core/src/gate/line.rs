//! Who waits for one resource, by what they ask for and by rank.
use super::class::{Class, ClassIx, Filed};
use super::guard::Guards;
use super::heads::Heads;
use super::resource::ResourceIx;
use crate::api::STARTS_REMEMBERED;
use crate::ids::ClaimId;
use crate::rank::{Head, Rank};
use crate::slab::Slab;
use crate::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

/// All classes that ask for the same number of units of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// So many.
    pub units: u64,
    /// Every class that asks for so many.
    pub members: BTreeSet<ClassIx>,
    /// So many of them have somebody waiting.
    pub live: usize,
    /// Those that are filed here because they are short of this resource.
    filed: Heads,
    /// The heads of all that could start as things are, wherever they are filed. Kept only where something asks for fewer units than this
    /// shelf: only such claims can take what one of these is short of.
    pub startable: Option<BTreeSet<Head>>,
}

/// Heads in order, kept up while they are asked for.
#[derive(Clone, Debug)]
struct Firsts {
    heads: Heads,
    /// Heads that came since somebody last asked.
    unasked: usize,
}

/// A start, for those that it passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub id: ClaimId,
    pub rank: Rank,
    pub fence: u64,
}

/// The line of a resource. It is there while some class asks for the resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// In the order of their units: mostly one, seldom more than a few.
    pub shelves: Vec<Shelf>,
    /// Heads of classes that could start as things are, while somebody asked for the first of late.
    firsts: Option<Box<Firsts>>,
    /// Waiting claims that were passed: what is free here decides whether they are delayed.
    pub watched: BTreeSet<ClaimId>,
    /// The last starts of this resource, while somebody waited.
    pub starts: VecDeque<Started>,
    /// Classes that fit and are held back on this resource.
    pub held: usize,
    /// When the timer of a bucket is set to fire.
    pub timer: Option<Time>,
    /// The protected waiters, as they were last read.
    pub guards: Guards,
    /// All heads in order, while somebody asks for them and nothing changes.
    heads: OnceLock<Vec<Head>>,
}

impl Line {
    fn find(&self, units: u64) -> Result<usize, usize> {
        match self.shelves.as_slice() {
            [only] if only.units == units => Ok(0),
            _ => self.shelves.binary_search_by_key(&units, |shelf| shelf.units),
        }
    }

    pub fn shelf_mut(&mut self, units: u64) -> Option<&mut Shelf> {
        self.find(units).ok().map(|at| &mut self.shelves[at])
    }

    /// Adds a class that asks for `units`.
    pub fn add(&mut self, class: ClassIx, units: u64, classes: &Slab<Class>) {
        let at = self.find(units).unwrap_or_else(|at| {
            let (members, filed) = (BTreeSet::new(), Heads::default());
            self.shelves.insert(at, Shelf { units, members, live: 0, filed, startable: None });
            at
        });
        self.shelves[at].members.insert(class);
        // Every shelf above the smallest keeps its heads in order.
        for shelf in self.shelves.iter_mut().skip(1).filter(|shelf| shelf.startable.is_none()) {
            let startable = shelf.members.iter().filter(|class| classes.get(**class).is_some_and(|c| c.startable));
            shelf.startable = Some(startable.map(|class| Head::new(classes[*class].head, *class)).collect());
        }
    }

    pub fn remove(&mut self, class: ClassIx, units: u64) {
        let Ok(at) = self.find(units) else { return };
        self.shelves[at].members.remove(&class);
        if self.shelves[at].members.is_empty() {
            self.shelves.remove(at);
        }
    }

    /// Shelves of those that ask for at most `units`, and of those that ask for more.
    pub fn split(&self, units: u64) -> (&[Shelf], &[Shelf]) {
        self.shelves.split_at(self.shelves.partition_point(|shelf| shelf.units <= units))
    }

    /// Shelves that somebody waits on.
    pub fn live(&self) -> impl Iterator<Item = &Shelf> {
        self.shelves.iter().filter(|shelf| shelf.live > 0)
    }

    pub fn members(&self) -> impl Iterator<Item = ClassIx> {
        self.shelves.iter().flat_map(|shelf| shelf.members.iter().copied())
    }

    /// Somebody joined, left or moved: what was read of the order holds no more.
    pub fn changed(&mut self) {
        self.heads.take();
    }

    /// A head that could start as things are came or moved.
    pub fn note_head(&mut self, head: Head) {
        let Some(firsts) = self.firsts.as_mut() else { return };
        firsts.heads.push(head);
        firsts.unasked += 1;
        if firsts.unasked > 2 * self.shelves.iter().map(|shelf| shelf.members.len()).sum::<usize>() + 64 {
            self.firsts = None;
        }
    }

    /// A class is short of this resource, and filed here.
    pub fn file(&mut self, head: Head, units: u64, classes: &Slab<Class>, here: ResourceIx) {
        let Some(shelf) = self.shelf_mut(units) else { return };
        if shelf.filed.len() > 2 * shelf.members.len() + 16 {
            let filed = shelf.members.iter().map(|at| (&classes[*at], *at));
            let filed = filed.filter(|(class, at)| class.filed == Filed::Short(here) && *at != head.class());
            shelf.filed.replace(filed.map(|(class, at)| Head::new(class.head, at)));
        }
        shelf.filed.push(head);
    }

    /// The first waiter of all that could start as things are.
    pub fn first(&mut self, classes: &Slab<Class>, here: ResourceIx) -> Option<Head> {
        let Self { firsts, shelves, .. } = self;
        let firsts = firsts.get_or_insert_with(|| {
            let members = shelves.iter().flat_map(|shelf| &shelf.members);
            let startable = members.filter(|class| classes[**class].startable);
            let mut heads = Heads::default();
            heads.replace(startable.map(|class| Head::new(classes[*class].head, *class)));
            Box::new(Firsts { heads, unasked: 0 })
        });
        firsts.unasked = 0;
        let holds = |class: &Class, head| class.is_startable_as(head) && class.key.units(here).is_some();
        firsts.heads.best(|head| classes.get(head.class()).is_some_and(|class| holds(class, head)))
    }

    /// The best-ranked class that is filed here although so many units are free.
    pub fn candidate(&mut self, free: u64, classes: &Slab<Class>, here: ResourceIx) -> Option<Head> {
        let filed_as = |class: &Class, head: Head, units: u64| {
            class.filed == Filed::Short(here) && class.head == head.rank() && class.units(here) == units
        };
        let holds = |head: Head, units| classes.get(head.class()).is_some_and(|class| filed_as(class, head, units));
        let fitting = self.shelves.iter_mut().take_while(|shelf| shelf.units <= free);
        fitting.filter_map(|shelf| shelf.filed.best(|head| holds(head, shelf.units))).min()
    }

    /// All heads in the order of their ranks.
    pub fn heads(&self, classes: &Slab<Class>) -> &[Head] {
        self.heads.get_or_init(|| {
            let waited_for = self.members().filter(|class| !classes[*class].queue.is_empty());
            let mut heads: Vec<_> = waited_for.map(|class| Head::new(classes[class].head, class)).collect();
            heads.sort_unstable();
            heads
        })
    }

    pub fn remember_start(&mut self, started: Started) {
        if self.starts.len() == STARTS_REMEMBERED {
            self.starts.pop_front();
        }
        self.starts.push_back(started);
    }
}
