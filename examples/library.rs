//! Remora inside a program: a table, a batch, a search, a facet. Run with
//! `cargo run --example library`.

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, FacetRequest, Normalization, Options,
    Result, Schema, SearchRequest, Selection, TableChanges, TextDef, TextQuery, Value,
};

fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("remora-library-{}", std::process::id()));
    let database = Database::open(&directory, Options::default())?;
    database.create_table(birds())?;

    let rows = [(1, "Common kingfisher", "rivers"), (2, "Belted kingfisher", "rivers")];
    let rows = rows.map(|(id, name, habitat)| {
        Change::Put(vec![Value::Int(id), Value::Text(name.into()), Value::Text(habitat.into())])
    });
    let changes = TableChanges { table: "birds".into(), changes: rows.into() };
    // Returns once the batch is durable and visible.
    database.apply(ChangeBatch { tables: vec![changes], positions: Vec::new() })?;

    let text = Some(TextQuery::Term("KINGFISH".to_owned()));
    let selection = Selection { table: "birds".to_owned(), text, ..Selection::default() };
    let fields = vec!["name".to_owned()];
    let request = SearchRequest {
        selection: selection.clone(),
        limit: 10,
        fields,
        ..SearchRequest::default()
    };
    let reply = database.search(&request)?;
    println!("{} birds, newest first:", reply.total);
    reply.hits.iter().for_each(|hit| println!("  {}", hit.fields[0]));

    let column = "habitat".to_owned();
    let facet = database.facet(&FacetRequest {
        selection,
        column,
        limit: 10,
        ..FacetRequest::default()
    })?;
    facet.values.iter().for_each(|(habitat, count)| println!("{habitat}: {count}"));

    database.close()?;
    Ok(std::fs::remove_dir_all(&directory)?)
}

fn birds() -> Schema {
    let column = |id, name: &str, kind, nullable| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable,
        indexed: true,
        declared: None,
    };
    Schema {
        name: "birds".to_owned(),
        columns: vec![
            column(1, "id", ColumnType::Int(64), false),
            column(2, "name", ColumnType::Text, true),
            column(3, "habitat", ColumnType::Text, true),
        ],
        primary_key: vec![0],
        texts: vec![TextDef {
            id: 1,
            columns: vec![1],
            delimiter: None,
            normalization: Normalization::default(),
        }],
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        declared: None,
    }
}
