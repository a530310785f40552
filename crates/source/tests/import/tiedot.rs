//! Databases of tiedot's, written here after the description of its files, and what crashes leave in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proptest::prelude::*;
use remora_source::{
    Error, Result,
    tiedot::{Directory, Found, Problem, Reader},
};

/// Small ones, so that buckets are chained.
const ENTRIES: usize = 2;
const HASH_BITS: u32 = 3;
const BUCKET: usize = 10 + 21 * ENTRIES;
/// What a file is longer than what it holds.
const GROWTH: usize = 3_000;

/// A number as Go's `binary.PutVarint` writes it, in ten bytes.
fn varint(number: i64) -> [u8; 10] {
    let mut left = (number.wrapping_shl(1) ^ (number >> 63)) as u64;
    let mut bytes = [0; 10];
    for byte in &mut bytes {
        *byte = (left & 0x7f) as u8 | if left > 0x7f { 0x80 } else { 0 };
        left >>= 7;
        if left == 0 {
            break;
        }
    }
    bytes
}

fn smear(key: i64) -> usize {
    let key = key ^ (key >> 4);
    let key = (key ^ 0xdeadbeef).wrapping_add(key << 5);
    let key = key ^ (key >> 11);
    (key & ((1 << HASH_BITS) - 1)) as usize
}

/// A partition that is written.
struct Partition {
    records: Vec<u8>,
    table: Vec<u8>,
}

impl Partition {
    fn new() -> Self {
        Self { records: Vec::new(), table: vec![0; BUCKET << HASH_BITS] }
    }

    /// Appends a record with twice the room that it takes; its place.
    fn append(&mut self, text: &[u8]) -> usize {
        let place = self.records.len();
        let room = text.len() * 2;
        self.records.push(1);
        self.records.extend(varint(room as i64));
        self.records.extend(text);
        self.records.resize(place + 11 + room, b' ');
        place
    }

    /// Puts an entry into the first vacant place of its chain; the entry's place.
    fn put(&mut self, id: i64, place: usize) -> usize {
        let mut bucket = smear(id);
        loop {
            for entry in 0..ENTRIES {
                let at = bucket * BUCKET + 10 + entry * 21;
                if self.table[at] != 1 {
                    self.table[at] = 1;
                    self.table[at + 1..at + 11].copy_from_slice(&varint(id));
                    self.table[at + 11..at + 21].copy_from_slice(&varint(place as i64));
                    return at;
                }
            }
            let next = self.next(bucket);
            bucket = if next > 0 { next } else { self.chain(bucket) };
        }
    }

    fn next(&self, bucket: usize) -> usize {
        // Numbers of buckets are small here: two bytes hold them, doubled.
        let (low, high) = (self.table[bucket * BUCKET], self.table[bucket * BUCKET + 1]);
        (usize::from(low & 0x7f) | usize::from(high) << 7) / 2
    }

    fn chain(&mut self, bucket: usize) -> usize {
        let next = self.table.len() / BUCKET;
        self.table.resize(self.table.len() + BUCKET, 0);
        self.table[bucket * BUCKET..bucket * BUCKET + 10].copy_from_slice(&varint(next as i64));
        next
    }
}

/// A collection that is written.
struct Collection {
    partitions: Vec<Partition>,
    /// Where each document's entry and record stand.
    places: BTreeMap<i64, (usize, usize)>,
}

impl Collection {
    fn new(partitions: usize) -> Self {
        let partitions = (0..partitions).map(|_| Partition::new()).collect();
        Self { partitions, places: BTreeMap::new() }
    }

    fn partition(&mut self, id: i64) -> &mut Partition {
        let count = self.partitions.len() as i64;
        &mut self.partitions[(id % count) as usize]
    }

    fn insert(&mut self, id: i64, text: &str) {
        let partition = self.partition(id);
        let place = partition.append(text.as_bytes());
        let entry = partition.put(id, place);
        self.places.insert(id, (entry, place));
    }

    /// In place where there is room, else behind the others.
    fn update(&mut self, id: i64, text: &str, room: usize) {
        let (entry, place) = self.places[&id];
        let partition = self.partition(id);
        if text.len() <= room {
            partition.records[place + 11..place + 11 + room].fill(b' ');
            partition.records[place + 11..place + 11 + text.len()].copy_from_slice(text.as_bytes());
            return;
        }
        partition.records[place] = 0;
        let place = partition.append(text.as_bytes());
        partition.table[entry] = 0;
        let entry = partition.put(id, place);
        self.places.insert(id, (entry, place));
    }

    fn delete(&mut self, id: i64) {
        let (entry, place) = self.places.remove(&id).unwrap();
        let partition = self.partition(id);
        partition.records[place] = 0;
        partition.table[entry] = 0;
    }

    fn write(&self, path: &Path) {
        for (number, partition) in self.partitions.iter().enumerate() {
            let grown = |bytes: &[u8]| [bytes, &vec![0; GROWTH]].concat();
            fs::write(path.join(format!("dat_{number}")), grown(&partition.records)).unwrap();
            fs::write(path.join(format!("id_{number}")), grown(&partition.table)).unwrap();
        }
    }
}

/// Makes the directory of a database with one collection.
fn directory(partitions: usize, indexes: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("number_of_partitions"), format!("{partitions}\n")).unwrap();
    let config = format!(
        "{{\"DocMaxRoom\": 2000, \"ColFileGrowth\": 1, \"PerBucket\": {ENTRIES}, \"HTFileGrowth\": 1, \"HashBits\": {HASH_BITS}}}"
    );
    fs::write(path.join("data-config.json"), config).unwrap();
    fs::create_dir(path.join("Feeds")).unwrap();
    for index in indexes {
        fs::create_dir(path.join("Feeds").join(index)).unwrap();
    }
    folder
}

fn read(path: &Path) -> Result<(BTreeMap<i64, String>, Vec<Problem>)> {
    let (mut documents, mut problems) = (BTreeMap::new(), Vec::new());
    let directory = Directory::open(path)?;
    Reader::new(&directory.collections[0]).each(&mut |found| {
        match found {
            Found::Document { id, text, .. } => {
                assert_eq!(documents.insert(id, text), None, "{id} comes twice");
            }
            Found::Problem(problem) => problems.push(problem),
        }
        Ok(())
    })?;
    Ok((documents, problems))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tiedot_documents_equal_the_written_ones(
        steps in prop::collection::vec((0_i64..40, "[a-z \u{e9}\"\\\\]{0,60}", 0_u8..4), 0..120),
        partitions in 1_usize..4,
        spread in prop::sample::select(vec![1_i64, 7_919, 229_000_000_000_001, i64::MAX / 41]),
    ) {
        let mut collection = Collection::new(partitions);
        let mut documents: BTreeMap<i64, (String, usize)> = BTreeMap::new();
        for (number, text, step) in steps {
            let id = number * spread;
            let text = serde_json::json!({"t": text}).to_string();
            match (documents.get(&id).cloned(), step) {
                (None, _) => {
                    collection.insert(id, &text);
                    documents.insert(id, (text.clone(), text.len() * 2));
                }
                (Some(_), 0) => {
                    collection.delete(id);
                    documents.remove(&id);
                }
                (Some((_, room)), _) => {
                    collection.update(id, &text, room);
                    let room = if text.len() <= room { room } else { text.len() * 2 };
                    documents.insert(id, (text, room));
                }
            }
        }
        let folder = directory(partitions, &["Author!Name", "Age"]);
        collection.write(&folder.path().join("Feeds"));
        let found = Directory::open(folder.path()).unwrap();
        prop_assert_eq!(&found.collections[0].name, "Feeds");
        let paths = [vec!["Age".to_owned()], vec!["Author".to_owned(), "Name".to_owned()]];
        prop_assert_eq!(&found.collections[0].indexes, &paths);
        let (read, problems) = read(folder.path()).unwrap();
        prop_assert_eq!(problems, []);
        let documents: BTreeMap<i64, String> =
            documents.into_iter().map(|(id, (text, _))| (id, text)).collect();
        prop_assert_eq!(read, documents);
    }

    #[test]
    fn any_bytes_in_tiedot_files_are_read_or_reported(
        changes in prop::collection::vec((any::<bool>(), 0_usize..2_000, any::<u8>()), 1..12),
        cut in prop::option::of(0_usize..1_000),
    ) {
        let mut collection = Collection::new(1);
        let written: BTreeSet<i64> = (1..20).map(|id| id * 31).collect();
        written.iter().for_each(|&id| collection.insert(id, &format!("{{\"id\":{id},\"t\":\"some text\"}}")));
        let partition = &mut collection.partitions[0];
        for (in_table, at, byte) in changes {
            let bytes = if in_table { &mut partition.table } else { &mut partition.records };
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let folder = directory(1, &[]);
        collection.write(&folder.path().join("Feeds"));
        if let Some(cut) = cut {
            let file = fs::File::options().write(true).open(folder.path().join("Feeds/id_0")).unwrap();
            file.set_len(cut as u64).unwrap();
        }
        // Whatever was lost, it ends, and no document comes twice.
        read(folder.path()).unwrap();
    }
}

/// A collection of the documents 0, 1, 2 … in one partition.
fn some(count: i64) -> Collection {
    let mut collection = Collection::new(1);
    (0..count).for_each(|id| collection.insert(id, &format!("{{\"n\":{id}}}")));
    collection
}

/// What is told of a collection, and the documents that are left.
fn state_of(collection: &Collection) -> (Vec<String>, Vec<i64>) {
    let folder = directory(collection.partitions.len(), &[]);
    collection.write(&folder.path().join("Feeds"));
    let (documents, problems) = read(folder.path()).unwrap();
    (problems.iter().map(ToString::to_string).collect(), documents.into_keys().collect())
}

#[test]
fn crash_remains_are_reported_with_their_position() {
    let told_once = |collection: &Collection, left: &[i64], message: &str| {
        let (problems, documents) = state_of(collection);
        assert_eq!((problems.len(), documents.as_slice()), (1, left), "{problems:?}");
        assert!(problems[0].contains(message), "{} / {message}", problems[0]);
    };
    // Deleted, and the entry stands still.
    let mut collection = some(3);
    let (entry, place) = collection.places[&1];
    collection.partitions[0].records[place] = 0;
    let message = format!(
        "Feeds/id_0, byte {entry}: the id 1 leads to byte {place} of Feeds/dat_0, where no document stands"
    );
    told_once(&collection, &[0, 2], &message);
    // Moved behind, and the entry is not there yet.
    let mut collection = some(3);
    let place = collection.partitions[0].append(b"{\"n\":3}");
    told_once(
        &collection,
        &[0, 1, 2],
        &format!("Feeds/dat_0, byte {place}: a document to which no id leads"),
    );
    // Overwritten by halves.
    let mut collection = some(3);
    let place = collection.places[&2].1;
    collection.partitions[0].records[place + 11..place + 20].copy_from_slice(b"{\"n\": 77}");
    collection.partitions[0].records[place + 19..place + 21].copy_from_slice(b"77");
    told_once(
        &collection,
        &[0, 1],
        &format!("Feeds/dat_0, byte {place}: the document 2 is half written or damaged: not JSON"),
    );
    // A room that cannot be: neither the record nor what is within can be walked over.
    let mut collection = some(3);
    let place = collection.places[&1].1;
    collection.partitions[0].records[place + 1..place + 11].copy_from_slice(&varint(1 << 40));
    let (problems, documents) = state_of(&collection);
    assert_eq!(documents, [0, 2]);
    assert!(problems[0].contains("where no record begins"), "{problems:?}");
    assert!(
        problems.iter().any(|it| it.contains(&format!("Feeds/dat_0, byte {place}: "))),
        "{problems:?}"
    );
    // Two entries lead to one record; one id has two entries.
    let mut collection = some(3);
    let place = collection.places[&1].1;
    collection.partitions[0].put(9, place);
    told_once(&collection, &[0, 1, 2], "whose document has another id already");
    let mut collection = some(3);
    let place = collection.partitions[0].append(b"{\"n\":4}");
    collection.partitions[0].put(1, place);
    let (problems, documents) = state_of(&collection);
    assert_eq!((problems.len(), documents), (2, vec![0, 1, 2]));
    assert!(problems[0].contains("the id 1 stands twice"), "{problems:?}");
    // A chain that goes back.
    let mut collection = some(30);
    let bucket = (0..8).find(|&bucket| collection.partitions[0].next(bucket) > 0).unwrap();
    collection.partitions[0].table[bucket * BUCKET..][..10].copy_from_slice(&varint(1));
    let (problems, documents) = state_of(&collection);
    assert!(
        problems[0].contains(&format!("bucket {bucket} is followed by bucket 1, which cannot be")),
        "{problems:?}"
    );
    // What was chained is without an id.
    assert_eq!(problems.len() - 1, 30 - documents.len());
}

#[test]
fn wrong_partitions_are_reported() {
    let mut collection = some(4);
    collection.insert(5, "{}");
    let folder = directory(1, &[]);
    collection.write(&folder.path().join("Feeds"));
    fs::write(folder.path().join("number_of_partitions"), "2").unwrap();
    let (documents, problems) = read(folder.path()).unwrap();
    assert_eq!(documents.into_keys().collect::<Vec<_>>(), [0, 2]);
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(
        messages.iter().any(|it| it.contains("the id 5 does not belong to this partition")),
        "{messages:?}"
    );
    assert!(
        messages
            .iter()
            .any(|it| it == "Feeds/id_1, byte 0: is missing, with the documents that it had"),
        "{messages:?}"
    );
    fs::write(folder.path().join("number_of_partitions"), "1").unwrap();
    fs::write(folder.path().join("Feeds/dat_1"), "").unwrap();
    let messages: Vec<_> = read(folder.path()).unwrap().1.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["Feeds/dat_1, byte 0: is of none of the 1 partitions"]);
}

#[test]
fn directory_without_a_database_is_refused() {
    let folder = directory(2, &[]);
    let refused = |file: &str, text: Option<&str>, message: &str| {
        let path = folder.path().join(file);
        let before = fs::read(&path).unwrap();
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = Directory::open(folder.path()).map(drop).unwrap_err();
        assert!(error.to_string().contains(message), "{error} / {message}");
        fs::write(&path, before).unwrap();
    };
    refused(
        "number_of_partitions",
        None,
        "is no database of tiedot's: it has no file number_of_partitions",
    );
    for wrong in ["", "0", "-1", "two", "99999999"] {
        refused("number_of_partitions", Some(wrong), "not how many partitions there are");
    }
    refused("data-config.json", Some("{"), "data-config.json cannot be read");
    for wrong in ["{\"PerBucket\":0}", "{\"HashBits\":63}", "{\"DocMaxRoom\":0}"] {
        refused("data-config.json", Some(wrong), "sizes that no database has");
    }
    assert!(matches!(Directory::open(Path::new("/no/such")), Err(Error::Format { .. })));
    // Files of version 3.2 and older have no sizes.
    fs::remove_file(folder.path().join("data-config.json")).unwrap();
    fs::create_dir(folder.path().join("scrub-Feeds-1711111111111111111")).unwrap();
    let found = Directory::open(folder.path()).unwrap().collections;
    let left: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_left_by_scrub)).collect();
    assert_eq!(left, [("Feeds", false), ("scrub-Feeds-1711111111111111111", true)]);
}
