//! Makes a history from a seed. It is played on a model meanwhile, so that most steps concern claims that wait or hold.
use super::op::{History, Op};
use super::play::Player;
use crate::amount::Amount;
use crate::model::Model;
use crate::rng::Rng;
use mirab_core::{ClaimId, SECOND};

const PRIORITIES: [i32; 7] = [0, 0, 0, 5, -5, i32::MAX, i32::MIN];

/// The history of a seed; always the same.
#[must_use]
pub fn generate(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let declared = declarations(&mut rng);
    let aging = rng.chance(30).then(|| rng.between(1, 5) * SECOND);
    let mut maker = Maker { rng, next_id: 1, names: requestable(&declared) };
    let mut history = History { seed, aging, declared, ops: Vec::new() };
    let mut player = Player::<Model>::alone(&history);
    for _ in 0..maker.rng.between(10, 45) {
        let op = maker.op(&player);
        player.apply_to_model(&op);
        history.ops.push(op);
    }
    history
}

fn declarations(rng: &mut Rng) -> Vec<(String, Amount)> {
    let mut out: Vec<(String, Amount)> = Vec::new();
    for name in ["a", "b", "pool:c"] {
        if rng.chance(80) || out.is_empty() {
            out.push((name.into(), semaphore(rng)));
        }
    }
    for (name, percent) in [("t", 60), ("u", 20), ("r:*", 25)] {
        if rng.chance(percent) {
            out.push((name.into(), bucket(rng)));
        }
    }
    for (name, percent) in [("k:*", 30), ("k:z", 15), ("*:z", 15)] {
        if rng.chance(percent) {
            out.push((name.into(), semaphore(rng)));
        }
    }
    out
}

fn semaphore(rng: &mut Rng) -> Amount {
    Amount::Semaphore(if rng.chance(5) { 0 } else { rng.between(1, 4) })
}

fn bucket(rng: &mut Rng) -> Amount {
    let rates = [(1, 1), (3, 1), (1, 3), (100, 1), (7, 11), (1, 604_800), (1_000_000, 1)];
    let (units, seconds) = *rng.pick(&rates).unwrap_or(&(1, 1));
    Amount::bucket(units, seconds, rng.between(1, 5))
}

/// Names that may be asked for, with the most that is usual.
fn requestable(declared: &[(String, Amount)]) -> Vec<(String, u64)> {
    let mut out = Vec::new();
    for (name, amount) in declared {
        let most = amount.capacity().max(1);
        match name.split_once('*') {
            None => out.push((name.clone(), most)),
            Some((prefix, "")) => out.extend(["1", "2", "z"].map(|key| (format!("{prefix}{key}"), most))),
            Some((_, suffix)) => out.push((format!("q{suffix}"), most)),
        }
    }
    out
}

struct Maker {
    rng: Rng,
    next_id: u64,
    names: Vec<(String, u64)>,
}

impl Maker {
    fn op(&mut self, player: &Player<Model>) -> Op {
        match self.rng.below(100) {
            0..42 => self.submission(player),
            42..66 => self.release(player),
            66..68 => match self.release(player) {
                Op::Release(id) => Op::Stop(id),
                op => op,
            },
            68..69 => self.settle(player),
            69..70 => Op::Cooldown(self.name(), self.rng.below(3 * SECOND)),
            70..73 => Op::ReleaseStale(self.some_id()),
            73..78 => self.on_waiting(player, |_, id| Op::Cancel(id)),
            78..83 => self.on_waiting(player, |rng, id| Op::Reprioritise(id, priority(rng))),
            83..88 => self.limit(player).map_or(Op::Wake, |(name, amount)| Op::SetLimit(name, amount)),
            88..93 => Op::Wake,
            93..95 => Op::Tick(self.rng.below(4 * SECOND)),
            95..96 => Op::Sleep(self.rng.below(2 * SECOND)),
            96..97 => Op::StepBack(self.rng.below(11 * SECOND)),
            97..98 => self.on_waiting(player, |_, id| Op::Release(id)),
            _ => self.restart(player),
        }
    }

    fn some_id(&mut self) -> ClaimId {
        ClaimId(self.rng.between(1, self.next_id))
    }

    fn on_waiting(&mut self, player: &Player<Model>, make: impl Fn(&mut Rng, ClaimId) -> Op) -> Op {
        let waiting: Vec<ClaimId> = player.host.waiting.iter().map(|c| c.id).collect();
        let id = self.rng.pick(&waiting).copied().unwrap_or(ClaimId(1));
        make(&mut self.rng, id)
    }

    /// Mostly bodies with nothing inside; sometimes one that tasks still wait in.
    fn release(&mut self, player: &Player<Model>) -> Op {
        let host = &player.host;
        let waits_in = |id| host.waiting.iter().any(|c| c.parent == Some(id));
        let ends: Vec<ClaimId> =
            host.leases.iter().map(|l| l.id).filter(|id| !player.model.has_leases_inside(*id)).collect();
        let quiet: Vec<ClaimId> = ends.iter().copied().filter(|id| !waits_in(*id)).collect();
        let from = if self.rng.chance(90) { &quiet } else { &ends };
        self.rng.pick(from).map_or(Op::Release(ClaimId(self.next_id)), |id| Op::Release(*id))
    }

    fn submission(&mut self, player: &Player<Model>) -> Op {
        let bodies: Vec<ClaimId> = player.host.leases.iter().map(|l| l.id).collect();
        let parent = if self.rng.chance(40) { self.rng.pick(&bodies).copied() } else { None };
        let mut needs = self.needs();
        match self.rng.below(100) {
            0..2 => needs = vec![("unknown".into(), 1)],
            2..4 => needs.iter_mut().for_each(|(_, units)| *units += 10),
            4..6 => needs.iter_mut().for_each(|(_, units)| *units = 0),
            6..12 => needs.extend(needs.first().cloned().map(|(name, _)| (name, 1))),
            12..15 => needs.clear(),
            _ => {}
        }
        let id = if self.rng.chance(1) { self.some_id() } else { ClaimId(self.next_id) };
        self.next_id += 1;
        let kind = self.rng.pick(&["steady", "noisy", "k3", "k4"]).copied().unwrap_or("steady");
        Op::Submit { id, needs, priority: priority(&mut self.rng), parent, kind }
    }

    fn name(&mut self) -> String {
        self.rng.pick(&self.names).map_or_else(String::new, |(name, _)| name.clone())
    }

    fn settle(&mut self, player: &Player<Model>) -> Op {
        let leases: Vec<(ClaimId, Option<String>)> =
            player.host.leases.iter().map(|l| (l.id, l.tokens.first().map(|(name, _)| name.clone()))).collect();
        let took: Vec<_> = leases.iter().filter(|(_, name)| name.is_some()).cloned().collect();
        let from = if took.is_empty() || self.rng.chance(10) { leases } else { took };
        let (id, name) = self.rng.pick(&from).cloned().unwrap_or((ClaimId(0), None));
        Op::Settle(id, name.unwrap_or_else(|| self.name()), self.rng.below(12))
    }

    fn needs(&mut self) -> Vec<(String, u64)> {
        let mut needs: Vec<(String, u64)> = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let Some((name, most)) = self.rng.pick(&self.names).cloned() else { continue };
            let units = if self.rng.chance(50) { 1 } else { self.rng.between(1, most) };
            if needs.iter().all(|(known, _)| *known != name) {
                needs.push((name, units));
            }
        }
        needs
    }

    fn restart(&mut self, player: &Player<Model>) -> Op {
        let after = if self.rng.chance(60) { 0 } else { self.rng.below(3 * SECOND) };
        Op::Restart(after, if self.rng.chance(30) { self.limit(player) } else { None })
    }

    fn limit(&mut self, player: &Player<Model>) -> Option<(String, Amount)> {
        let (name, amount) = self.rng.pick(&player.host.declared).cloned()?;
        let amount = match amount {
            Amount::Semaphore(_) => Amount::Semaphore(self.rng.below(6)),
            Amount::Bucket { .. } => bucket(&mut self.rng),
        };
        Some((name, amount))
    }
}

fn priority(rng: &mut Rng) -> i32 {
    *rng.pick(&PRIORITIES).unwrap_or(&0)
}
