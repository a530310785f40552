// The driver of Go's database/sql: pooled connections, prepared statements, types, errors.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	address := fmt.Sprintf("root@tcp(127.0.0.1:%s)/", os.Args[1])
	server, err := sql.Open("mysql", address)
	must(err)
	_, err = server.Exec("CREATE DATABASE go_test")
	must(err)
	pool, err := sql.Open("mysql", address+"go_test?parseTime=true")
	must(err)
	_, err = pool.Exec("CREATE TABLE stock (id BIGINT PRIMARY KEY, name VARCHAR(30), " +
		"price DECIMAL(8,2), seen DATETIME(6), raw VARBINARY(8))")
	must(err)
	seen := time.Date(2025, 3, 4, 5, 6, 7, 890123000, time.UTC)
	transaction, err := pool.Begin()
	must(err)
	insert, err := transaction.Prepare("INSERT INTO stock VALUES (?, ?, ?, ?, ?)")
	must(err)
	for number := range 100 {
		_, err = insert.Exec(number, fmt.Sprintf("name %d", number), "1.25", seen, []byte{0, 255})
		must(err)
	}
	must(transaction.Commit())
	var name, price string
	var read time.Time
	var raw []byte
	row := pool.QueryRow("SELECT name, price, seen, raw FROM stock WHERE id = ?", 7)
	must(row.Scan(&name, &price, &read, &raw))
	if name != "name 7" || price != "1.25" || !read.Equal(seen) || string(raw) != "\x00\xff" {
		log.Fatal(name, price, read, raw)
	}
	var total string
	var count int
	must(pool.QueryRow("SELECT SUM(price), COUNT(*) FROM stock").Scan(&total, &count))
	if total != "125.00" || count != 100 {
		log.Fatal(total, count)
	}
	_, err = pool.Exec("INSERT INTO stock (id) VALUES (1)")
	var told *mysql.MySQLError
	if !errors.As(err, &told) || told.Number != 1062 {
		log.Fatal(err)
	}
	_, err = server.Exec("DROP DATABASE go_test")
	must(err)
	fmt.Println("ok")
}
