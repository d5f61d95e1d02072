//! The one order of a gate.
use crate::ids::Place;

/// Where a claim stands in the one order of all claims of a gate; the smaller goes first.
///
/// All that is compared stands in two wide numbers: they are compared with a few instructions, millions of times a second. From the top:
/// the key, the sequence number (64 bits), the order of call (64 bits), and in the last 32 bits the number of a class (see [`Head`]),
/// which are 0 in a rank. The key is minus the priority (32 bits); with ageing, the instant of joining minus what the priority is worth
/// (96 bits). So, without ageing, the first number alone nearly always decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    high: u128,
    low: u128,
}

impl Rank {
    /// Nothing ranks below.
    pub const LAST: Rank = Rank { high: u128::MAX, low: u128::MAX };

    pub fn new(priority: i32, place: Place, aging: Option<u64>) -> Self {
        let (seq, call) = (u128::from(place.seq), u128::from(place.call));
        match aging {
            None => {
                // The smaller for the higher priority.
                let key = u128::from((i64::from(i32::MAX) - i64::from(priority)) as u32);
                Self { high: key << 96 | seq << 32 | call >> 32, low: call << 96 }
            }
            Some(worth) => {
                let key = i128::from(place.joined_at.0) - i128::from(priority) * i128::from(worth);
                // 2^95 is added, so that keys below 0 come before those above: a priority of 31 bits times 63 bits of nanoseconds
                // stays below it.
                let key = u128::try_from(key + (1 << 95)).unwrap_or(0);
                Self { high: key << 32 | seq >> 32, low: seq << 96 | call << 32 }
            }
        }
    }
}

/// The key of priority 2^15 - 1, without ageing.
const FIRST_SHORT: u32 = i32::MAX as u32 - i16::MAX as u32;

/// The head of a class by rank: ordered like its rank, then by the number of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head(Rank);

impl Head {
    /// No head ranks below.
    pub const LAST: Head = Head(Rank::LAST);

    pub fn new(Rank { high, low }: Rank, class: u32) -> Self {
        Self(Rank { high, low: low | u128::from(class) })
    }

    /// A number that never orders two heads the other way round, and mostly tells them apart: without ageing for priorities of 16 bits and
    /// sequence numbers below 2^48.
    pub fn short(self) -> u64 {
        let key = ((self.0.high >> 96) as u32).saturating_sub(FIRST_SHORT).min(u32::from(u16::MAX));
        let seq = ((self.0.high >> 32) as u64).min((1 << 48) - 1);
        u64::from(key) << 48 | seq
    }

    pub fn rank(self) -> Rank {
        Rank { high: self.0.high, low: self.0.low & !u128::from(u32::MAX) }
    }

    pub fn class(self) -> u32 {
        self.0.low as u32
    }
}

/// Where a claim stands among claims of the same priority: all of the rank that can differ there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// The instant of joining, with ageing; else 0.
    joined_at: u64,
    seq: u64,
    call: u64,
}

impl Seat {
    pub fn new(place: Place, aging: Option<u64>) -> Self {
        Self { joined_at: aging.map_or(0, |_| place.joined_at.0), seq: place.seq, call: place.call }
    }

    /// The rank of one that sits here.
    pub fn rank(self, priority: i32, aging: Option<u64>) -> Rank {
        let joined_at = crate::time::Time(self.joined_at);
        Rank::new(priority, Place { seq: self.seq, call: self.call, joined_at }, aging)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn ranks_are_ordered_by_key_then_sequence_then_call() {
        let place = |seq, call, joined_at| Place { seq, call, joined_at: Time(joined_at) };
        let plain = |priority, seq, call| Rank::new(priority, place(seq, call, 0), None);
        let order = [
            plain(i32::MAX, u64::MAX, u64::MAX),
            plain(5, 0, 7),
            plain(5, 1 << 32, 0),
            plain(5, (1 << 32) + 1, 3),
            plain(5, (1 << 32) + 1, 4),
            plain(0, 0, 0),
            plain(-1, 0, 0),
            plain(i32::MIN, 0, 0),
        ];
        assert!(order.is_sorted());
        let aged = |priority, joined_at| Rank::new(priority, place(1, 0, joined_at), Some(i64::MAX as u64));
        assert!([aged(i32::MAX, 9), aged(1, 0), aged(0, 0), aged(0, 9), aged(-1, 0), aged(i32::MIN, 0)].is_sorted());
        let heads = [Head::new(order[1], 9), Head::new(order[2], 1), Head::new(order[2], 2)];
        assert!(heads.is_sorted());
        assert_eq!((heads[0].rank(), heads[0].class()), (order[1], 9));
        let shorts = |ranks: &[Rank]| ranks.iter().map(|rank| Head::new(*rank, 0).short()).collect::<Vec<_>>();
        assert!(shorts(&order).is_sorted() && Head::new(order[7], 0).short() <= Head::LAST.short());
        let near = [plain(32_767, 0, 0), plain(1, 5, 0), plain(0, 3, 0), plain(0, 4, 0), plain(-32_768, 0, 0)];
        assert!(shorts(&near).is_sorted_by(|a, b| a < b));
    }
}
