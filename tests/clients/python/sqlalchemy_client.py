"""SQLAlchemy: tables made from classes, rows through the ORM, and everything read back by
reflection."""

import datetime
import decimal
import sys

from sqlalchemy import (
    DECIMAL,
    DateTime,
    Enum,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    books: Mapped[list["Book"]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "books"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200), comment="as printed")
    price: Mapped[decimal.Decimal] = mapped_column(DECIMAL(8, 2))
    kind: Mapped[str] = mapped_column(Enum("novel", "poem"))
    bought: Mapped[datetime.datetime] = mapped_column(DateTime)
    body: Mapped[str | None] = mapped_column(Text)
    author_id: Mapped[int] = mapped_column(ForeignKey("authors.id", name="written_by"))
    author: Mapped[Author] = relationship(back_populates="books")
    __table_args__ = (
        UniqueConstraint("title", "author_id", name="one_each"),
        Index("by_price", "price"),
    )


port, driver = int(sys.argv[1]), sys.argv[2]
address = f"mysql+{driver}://root@127.0.0.1:{port}/"
with create_engine(address).connect() as connection:
    connection.execute(text("CREATE DATABASE alchemy_test"))
engine = create_engine(address + "alchemy_test")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for number in range(3):
        author = Author(name=f"author {number}")
        for each in range(number + 1):
            author.books.append(
                Book(
                    title=f"book {each}",
                    price=decimal.Decimal("9.90") + each,
                    kind="novel",
                    bought=datetime.datetime(2024, 5, each + 1, 10, 0, 0),
                )
            )
        session.add(author)
    session.commit()
with Session(engine) as session:
    last = session.scalars(select(Author).where(Author.name == "author 2")).one()
    assert [book.title for book in last.books] == ["book 0", "book 1", "book 2"]
    last.books[0].price = decimal.Decimal("1.00")
    session.delete(last.books[2])
    session.commit()
    totals = select(Author.name, func.count(), func.sum(Book.price)).join(Book)
    found = session.execute(totals.group_by(Author.name).order_by(Author.name)).all()
    assert found[2] == ("author 2", 2, decimal.Decimal("11.90")), found
look = inspect(engine)
assert set(look.get_table_names()) == {"authors", "books"}
assert look.get_view_names() == []
assert look.has_table("books") and not look.has_table("nothing")
columns = {column["name"]: column for column in look.get_columns("books")}
assert columns["id"]["autoincrement"] and not columns["id"]["nullable"]
assert columns["title"]["type"].length == 200 and columns["title"]["comment"] == "as printed"
assert (columns["price"]["type"].precision, columns["price"]["type"].scale) == (8, 2)
assert columns["kind"]["type"].enums == ["novel", "poem"]
assert look.get_pk_constraint("books")["constrained_columns"] == ["id"]
foreign = look.get_foreign_keys("books")
assert [(key["name"], key["referred_table"]) for key in foreign] == [("written_by", "authors")]
indexes = {index["name"]: index for index in look.get_indexes("books")}
assert indexes["by_price"]["column_names"] == ["price"]
assert look.get_unique_constraints("books")[0]["column_names"] == ["title", "author_id"]
assert "alchemy_test" in look.get_schema_names()
reflected = Table("books", MetaData(), autoload_with=engine)
with engine.connect() as connection:
    titles = connection.execute(select(reflected.c.title).order_by(reflected.c.id)).scalars()
    assert list(titles)[0] == "book 0"
Base.metadata.drop_all(engine)
with engine.connect() as connection:
    connection.execute(text("DROP DATABASE alchemy_test"))
print("ok")
