//! Samples that arrive together.

use proptest::prelude::*;
use tampu_archive::{Archive, Arrival, StreamOffset};
use tampu_types::{LogRecord, Time, log_batch::encode_records};

mod support;
use support::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Arrivals of several samples, of any ids, that begin at samples that came before or right after them.
    #[test]
    fn samples_of_one_arrival_are_kept_as_if_each_came_alone(
        arrivals in proptest::collection::vec(
            (0u32..2, 0u64..3, proptest::collection::vec(proptest::collection::vec((0u32..2, 0u64..200, any::<bool>()), 0..4), 1..6)), 1..20),
        fresh: bool,
    ) {
        let dirs = [support::dir(), support::dir()];
        let [together, alone] = [open(dirs[0].path()), open(dirs[1].path())];
        let mut nexts = [0u64; 2];
        let mut unused = 1000;
        for (stream, back, samples) in &arrivals {
            let first = nexts[*stream as usize].saturating_sub(*back);
            let samples: Vec<Vec<u8>> = samples.iter().map(|numbers| {
                let record = |&(ring, number, has_id): &(u32, u64, bool)| {
                    unused += 1;
                    // Either ids that nobody has used, as nearly always, or ids that repeat.
                    let mut made = record(life(1), ring, if fresh { unused } else { number });
                    made.id = made.id.filter(|_| has_id);
                    made
                };
                encode_records(&numbers.iter().map(record).collect::<Vec<_>>()).unwrap()
            }).collect();
            let lent: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
            let whole = header(life(8), *stream, first, samples.len() as u32);
            let taken = together.append(&Arrival::of_stream(&whole, &lent, Time(5 * SECOND))).unwrap();
            let mut sum = (0, 0);
            for (place, sample) in lent.iter().enumerate() {
                let header = header(life(8), *stream, first + place as u64, 1);
                let taken = alone.append(&Arrival::of_stream(&header, &[sample], Time(5 * SECOND))).unwrap();
                sum = (sum.0 + taken.records, sum.1 + taken.duplicates);
            }
            prop_assert_eq!((taken.records, taken.duplicates), sum);
            nexts[*stream as usize] = nexts[*stream as usize].max(first + samples.len() as u64);
        }
        flush(&together);
        flush(&alone);
        prop_assert_eq!(all(&together), all(&alone));
        let offsets = [&together, &alone].map(|archive| {
            let mut offsets = archive.offsets();
            offsets.sort();
            offsets
        });
        prop_assert_eq!(&offsets[0], &offsets[1]);
    }
}

#[test]
fn what_packets_of_one_place_repeat_is_stored_once() {
    let dirs = [support::dir(), support::dir()];
    let [together, alone] = [open(dirs[0].path()), open(dirs[1].path())];
    let place = |number: u64| LogRecord { routine: "r".repeat(500), data: Vec::new(), ..record(life(1), 0, number * 30) };
    let samples: Vec<Vec<u8>> = (0..100).map(|number| encode_records(&[place(number)]).unwrap()).collect();
    let lent: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let taken = together.append(&Arrival::of_stream(&header(life(1), 0, 0, 100), &lent, Time(5 * SECOND))).unwrap();
    assert_eq!((taken.records, taken.duplicates), (100, 0));
    for (sample, number) in lent.iter().zip(0..) {
        alone.append(&Arrival::of_stream(&header(life(1), 0, number, 1), &[sample], Time(5 * SECOND))).unwrap();
    }
    flush(&together);
    flush(&alone);
    assert_eq!(all(&together), all(&alone));
    let [bytes, before] = [&together, &alone].map(|archive| archive.health().bytes as usize);
    assert!(before > 100 * 500 && bytes < before - 99 * 500, "{bytes} of {before}");
    drop(together);
    let again = open(dirs[0].path());
    assert_eq!(again.offsets(), [StreamOffset { incarnation: life(1), stream: 0, next: 100 }]);
    assert_eq!(all(&again), all(&alone));
    // The next arrival of the stream goes on behind all of them.
    let taken = again.append(&Arrival::of_stream(&header(life(1), 0, 99, 2), &[lent[99], &samples[0]], Time(0))).unwrap();
    assert_eq!((taken.records, taken.duplicates), (0, 2));
}
