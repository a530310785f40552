//! The lists that segments of batches do not have, and that merges make.

use super::{put, start};
use crate::{
    merge::plan::{Limit, Size, plan},
    snapshot::Claims,
    write::tests::fixture::batch,
};

#[test]
fn what_is_left_of_batches_gets_its_lists_when_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    let rows = (0..8_192).flat_map(|id| put(id, "coral reef").tables.remove(0).changes);
    database.apply(batch(rows.collect())).unwrap();
    let view = database.view("t");
    let knows = |view: &crate::snapshot::TableView| {
        let texts: Vec<bool> = view
            .segments
            .iter()
            .filter_map(|view| view.segment.text(1))
            .map(remora_index::text::TextIndex::knows_neighbours)
            .collect();
        texts
    };
    assert_eq!(knows(&view), [false]);
    let limit = Limit::of(&database.shared().options);
    let planned = |view, size| plan(view, &Claims::none(), size, &limit);
    assert_eq!(planned(&view, Size::Large), None);
    assert_eq!(planned(&view, Size::Idle), Some(vec![0]));
    database.optimize(Some("t")).unwrap();
    let view = database.view("t");
    assert_eq!(knows(&view), [true]);
    assert_eq!(planned(&view, Size::Idle), None);
}
