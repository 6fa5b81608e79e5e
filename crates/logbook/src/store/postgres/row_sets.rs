//! Rows that match a want, found by merging sorted lists of rows.

use std::{cell::Cell, sync::Arc};

use super::tokens::{is_one_set, sets};
use crate::query::candidates::Want;

/// A want as a tree over sets of numbers. An entry is in the list of a set if it has one of the set's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// The list of the set with this index.
    List(usize),
    /// Rows that are in each of the first, and in none of the second.
    All(Vec<Shape>, Vec<Shape>),
    /// Rows that are in any of these.
    Any(Vec<Shape>),
}

/// Returns the tree of a want, and its sets. `None` if lists alone do not give its rows: a negation, or everything, is
/// then the only condition.
pub fn shape(want: &Want) -> Option<(Shape, Vec<Vec<i64>>)> {
    let mut all = Vec::new();
    let shape = one(want, &mut all)?;
    Some((shape, all))
}

fn list(numbers: Vec<i64>, all: &mut Vec<Vec<i64>>) -> Shape {
    let at = all.iter().position(|known| *known == numbers).unwrap_or_else(|| {
        all.push(numbers);
        all.len() - 1
    });
    Shape::List(at)
}

fn one(want: &Want, all: &mut Vec<Vec<i64>>) -> Option<Shape> {
    match want {
        Want::All | Want::Not(_) => None,
        Want::Nothing => Some(Shape::Any(Vec::new())),
        Want::Phrase(column, words) => {
            let mut lists: Vec<Shape> = sets(*column, words).into_iter().map(|set| list(set, all)).collect();
            if lists.len() == 1 { lists.pop() } else { Some(Shape::All(lists, Vec::new())) }
        }
        Want::And(wants) => {
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for want in wants {
                match want {
                    Want::All => {}
                    Want::Not(inner) if **inner == Want::All => return Some(Shape::Any(Vec::new())),
                    Want::Not(inner) => without.push(one(inner, all)?),
                    want => with.push(one(want, all)?),
                }
            }
            (!with.is_empty()).then_some(Shape::All(with, without))
        }
        Want::Or(wants) => {
            // One list for all that one set can express.
            let (mut together, mut parts) = (Vec::new(), Vec::new());
            for want in wants {
                match want {
                    Want::Phrase(column, words) if is_one_set(words) => {
                        together.extend(sets(*column, words).into_iter().flatten())
                    }
                    want => parts.push(one(want, all)?),
                }
            }
            if !together.is_empty() {
                parts.push(list(together, all));
            }
            Some(Shape::Any(parts))
        }
    }
}

/// A list, with the position of the last row that was found in it: the next one is mostly beside it.
#[derive(Debug)]
pub struct RowList {
    rows: Arc<[i64]>,
    at: Cell<usize>,
}

impl RowList {
    /// Returns the last row at or before another.
    fn last(&self, row: i64) -> Option<i64> {
        let (rows, mut high, mut step) = (&self.rows, self.at.get().min(self.rows.len()), 1);
        // Rows from `high` on are larger; those before `low` are not.
        if rows.get(high).is_some_and(|found| *found <= row) {
            high = rows.len();
        }
        let mut low = high;
        while low > 0 && rows[low - 1] > row {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
        let end = low + rows[low..high].partition_point(|found| *found <= row);
        self.at.set(end);
        end.checked_sub(1).map(|at| rows[at])
    }

    /// Returns the first row at or after another.
    fn first(&self, row: i64) -> Option<i64> {
        let (rows, mut low, mut step) = (&self.rows, self.at.get().min(self.rows.len()), 1);
        // Rows before `low` are smaller; those from `high` on are not.
        if low > 0 && rows[low - 1] >= row {
            low = 0;
        }
        let mut high = low;
        while high < rows.len() && rows[high] < row {
            low = high + 1;
            high = (high + step).min(rows.len());
            step *= 2;
        }
        let at = low + rows[low..high].partition_point(|found| *found < row);
        self.at.set(at);
        rows.get(at).copied()
    }
}

/// The rows of a want up to a row.
#[derive(Debug)]
pub struct Listed {
    pub rows: RowSet,
    pub until: i64,
}

/// Rows that match a want.
#[derive(Debug)]
pub enum RowSet {
    List(RowList),
    All(Vec<RowSet>, Vec<RowSet>),
    Any(Vec<RowSet>),
}

impl RowSet {
    /// Makes the rows of a tree from the lists of its sets. Each list is sorted.
    pub fn new(shape: &Shape, lists: &[Arc<[i64]>]) -> RowSet {
        let several = |shapes: &[Shape]| shapes.iter().map(|shape| RowSet::new(shape, lists)).collect();
        match shape {
            Shape::List(at) => RowSet::List(RowList { rows: lists.get(*at).cloned().unwrap_or_default(), at: Cell::new(0) }),
            Shape::All(with, without) => RowSet::All(several(with), several(without)),
            Shape::Any(parts) => RowSet::Any(several(parts)),
        }
    }

    /// Returns the nearest row at or beyond another, downwards or upwards. `go_on` is called at each step; `false` ends the search,
    /// and what is returned then has no meaning.
    pub fn nearest(&self, row: i64, descending: bool, go_on: &dyn Fn() -> bool) -> Option<i64> {
        match self {
            RowSet::List(list) if descending => list.last(row),
            RowSet::List(list) => list.first(row),
            RowSet::Any(parts) => {
                let found = parts.iter().filter_map(|part| part.nearest(row, descending, go_on));
                if descending { found.max() } else { found.min() }
            }
            RowSet::All(with, without) => {
                let mut row = row;
                loop {
                    if !go_on() {
                        return None;
                    }
                    let begun = row;
                    for part in with {
                        row = part.nearest(row, descending, go_on)?;
                    }
                    if row != begun && with.len() > 1 {
                        continue;
                    }
                    if !without.iter().any(|part| part.nearest(row, descending, go_on) == Some(row)) {
                        return Some(row);
                    }
                    row = if descending { row.checked_sub(1)? } else { row.checked_add(1)? };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::candidates::Column;

    fn word(word: &str) -> Want {
        Want::Phrase(Column::Text, vec![word.to_owned()])
    }

    #[test]
    fn negations_and_everything_need_another_condition() {
        let not = Want::Not(Box::new(word("a")));
        assert_eq!(shape(&Want::All), None);
        assert_eq!(shape(&not), None);
        assert_eq!(shape(&Want::And(vec![Want::All, not.clone()])), None);
        assert_eq!(shape(&Want::Or(vec![word("a"), not.clone()])), None);
        let (shape, sets) = shape(&Want::And(vec![word("b"), not])).unwrap();
        assert_eq!((shape, sets.len()), (Shape::All(vec![Shape::List(0)], vec![Shape::List(1)]), 2));
    }

    #[test]
    fn a_set_is_listed_once() {
        let (_, sets) = shape(&Want::And(vec![word("a"), Want::Or(vec![word("b"), word("c")]), word("a")])).unwrap();
        assert_eq!(sets.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
    }

    /// Trees over four lists.
    fn shapes() -> impl Strategy<Value = Shape> {
        let leaf = (0..4usize).prop_map(Shape::List);
        leaf.prop_recursive(3, 12, 3, |inner| {
            let several = || prop::collection::vec(inner.clone(), 0..3);
            prop_oneof![
                (prop::collection::vec(inner.clone(), 1..3), several()).prop_map(|(with, without)| Shape::All(with, without)),
                several().prop_map(Shape::Any),
            ]
        })
    }

    fn has(shape: &Shape, lists: &[Arc<[i64]>], row: i64) -> bool {
        match shape {
            Shape::List(at) => lists[*at].contains(&row),
            Shape::All(with, without) => {
                with.iter().all(|shape| has(shape, lists, row)) && !without.iter().any(|shape| has(shape, lists, row))
            }
            Shape::Any(parts) => parts.iter().any(|shape| has(shape, lists, row)),
        }
    }

    #[test]
    fn a_search_through_lists_without_a_common_row_ends_when_it_is_told() {
        let lists: Vec<Arc<[i64]>> = vec![(0..10_000).map(|n| 2 * n).collect(), (0..10_000).map(|n| 2 * n + 1).collect()];
        let rows = RowSet::new(&Shape::All(vec![Shape::List(0), Shape::List(1)], vec![]), &lists);
        let steps = Cell::new(0);
        let go_on = || {
            steps.set(steps.get() + 1);
            steps.get() < 10
        };
        assert_eq!((rows.nearest(0, false, &go_on), steps.get()), (None, 10));
    }

    proptest! {
        #[test]
        fn rows_come_in_order_from_any_place_in_both_directions(
            shape in shapes(),
            lists in prop::collection::vec(prop::collection::btree_set(0..60i64, 0..40), 4),
            starts in prop::collection::vec((-2..62i64, any::<bool>()), 1..6),
        ) {
            let lists: Vec<Arc<[i64]>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let rows = RowSet::new(&shape, &lists);
            for (start, descending) in starts {
                let (mut found, mut from) = (Vec::new(), start);
                while let Some(row) = rows.nearest(from, descending, &|| true) {
                    found.push(row);
                    from = if descending { row - 1 } else { row + 1 };
                }
                let mut expected: Vec<i64> = (0..60)
                    .filter(|row| if descending { *row <= start } else { *row >= start })
                    .filter(|row| has(&shape, &lists, *row))
                    .collect();
                if descending {
                    expected.reverse();
                }
                prop_assert_eq!(found, expected);
            }
        }
    }
}
