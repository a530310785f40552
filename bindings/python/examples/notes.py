"""Notes that are searched: `python examples/notes.py [DIRECTORY]`."""

import datetime
import sys

import remora

with remora.connect(sys.argv[1] if len(sys.argv) > 1 else ":memory:") as con:
    con.execute(
        "CREATE TABLE IF NOT EXISTS notes (id INT PRIMARY KEY AUTO_INCREMENT, day DATE, body TEXT, place VARCHAR(50), FULLTEXT (body))"
    )
    con.executemany(
        "INSERT INTO notes (day, body, place) VALUES (?, ?, ?)",
        [
            (datetime.date(2026, 5, 3), "Grey herons nest at the reef", "coast"),
            (datetime.date(2026, 5, 4), "A kingfisher by the river", "inland"),
            (datetime.date(2026, 6, 1), "コーラルリーフのサギ: herons again", "coast"),
        ],
    )
    con.commit()

    found = con.search("notes", "HERON", remora.field("place") == "coast", facets="place", highlight=("*", "*"))
    print(f"{found.total} notes have it, by place: {found.facets['place']}")
    for row, snippet in zip(found, found.snippets):
        print(f"{row['day']}: {snippet}")

    months = con.execute("SELECT MONTH(day) AS month, COUNT(*) AS notes FROM notes GROUP BY 1 ORDER BY 1")
    print([column[0] for column in months.description or ()], months.fetchall())

    birds = con.collection("birds")
    birds.index("length_cm")
    birds.insert_many([{"name": "Grey heron", "length_cm": 94}, {"name": "Common kingfisher", "length_cm": 17}])
    con.commit()
    for key, bird in birds.find("length_cm > 50", sort="-length_cm"):
        print(key, bird)
