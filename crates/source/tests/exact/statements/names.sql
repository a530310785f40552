// Names that need quotes, and names that do not look like names.

@case words of the language as names
CREATE TABLE `table` (`select` INT PRIMARY KEY, `from` INT, `partition` INT, `rename` INT)
INSERT INTO `table` VALUES (1, 2, 3, 4)
ALTER TABLE `table` CHANGE `from` `rename` INT, CHANGE `rename` `from` INT
ALTER TABLE `table` RENAME TO `rename`
RENAME TABLE `rename` TO `to`, `to` TO `if`
ALTER TABLE `if` ADD `exists` INT DEFAULT 3, DROP `partition`
CREATE TABLE IF NOT EXISTS `exists` LIKE `if`
DROP TABLE IF EXISTS `if`, `exists`
CREATE TABLE temporary (id INT PRIMARY KEY)
CREATE TABLE partition_ (truncate INT PRIMARY KEY, import INT, discard INT, convert_ INT)
INSERT INTO partition_ VALUES (1, 2, 3, 4)
ALTER TABLE partition_ DROP import, CHANGE discard import INT
TRUNCATE temporary
RENAME TABLE temporary TO sequence, partition_ TO view
ALTER TABLE view RENAME COLUMN import TO `table`, ADD `column` INT
DROP TABLE sequence, view
CREATE TABLE begin (id INT PRIMARY KEY, commit INT)
INSERT INTO begin VALUES (1, 1)
TRUNCATE begin

@case odd characters
CREATE TABLE `a b` (`c d` INT PRIMARY KEY, `e.f` INT)
INSERT INTO `a b` VALUES (1, 2)
RENAME TABLE `a b` TO `a.b`
ALTER TABLE `a.b` ADD `;` INT DEFAULT 1, ADD `'` INT DEFAULT 2, ADD `"` INT DEFAULT 3
ALTER TABLE `a.b` RENAME TO `a``b`
ALTER TABLE `a``b` CHANGE `;` `,` INT, CHANGE `'` `;` INT
INSERT INTO `a``b` VALUES (2, 3, 4, 5, 6)
RENAME TABLE `a``b` TO `a/b`
ALTER TABLE `a/b` RENAME TO `a\b`
RENAME TABLE `a\b` TO `#a`, `#a` TO `$a`
ALTER TABLE $a RENAME a$
TRUNCATE a$
RENAME TABLE a$ TO `-- x`
ALTER TABLE `-- x` RENAME TO `/* x */`
INSERT INTO `/* x */` (`c d`) VALUES (9)
ALTER TABLE `/* x */` RENAME TO `*`
ALTER TABLE `*` RENAME TO `%`, ADD `%` INT DEFAULT 3
ALTER TABLE `%` RENAME TO `?`
DROP TABLE `?`

@case names beyond ASCII
CREATE TABLE größe (id INT PRIMARY KEY, länge INT, 長さ INT)
INSERT INTO größe VALUES (1, 2, 3)
ALTER TABLE größe CHANGE länge 長さ INT, CHANGE 長さ länge INT
RENAME TABLE größe TO 表
ALTER TABLE 表 ADD `Ωμέγα` INT DEFAULT 4, ADD 한국어 INT DEFAULT 5
ALTER TABLE 表 RENAME TO таблица
TRUNCATE таблица
CREATE TABLE `таблица 2` LIKE таблица
DROP TABLE таблица, `таблица 2`
CREATE TABLE t (id INT PRIMARY KEY, ａ INT, a INT)
INSERT INTO t VALUES (1, 2, 3)

@case columns of names that are hard to take
CREATE TABLE other (id INT PRIMARY KEY)
CREATE TABLE t (id INT PRIMARY KEY, ` x` INT, `  ` INT)
INSERT INTO t VALUES (1, 2, 3)
INSERT INTO other VALUES (1)
ALTER TABLE other ADD ` y` INT DEFAULT 1
ALTER TABLE other CHANGE ` y` `	tab` INT
ALTER TABLE other CHANGE `	tab` `a	b` INT
CREATE TABLE u (` id` INT PRIMARY KEY)
INSERT INTO u VALUES (5)
ALTER TABLE u CHANGE ` id` id INT
ALTER TABLE other ADD abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl INT DEFAULT 2
ALTER TABLE other ADD 長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長 INT DEFAULT 2
CREATE TABLE 長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長 (id INT PRIMARY KEY)

@case columns with the names that an engine may use itself
CREATE TABLE t (id INT PRIMARY KEY, _id INT, _rowid_ INT, rowid INT, `#key` INT, __v INT, _score INT, `row_start_` INT)
INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7, 8)
UPDATE t SET rowid = 9
CREATE TABLE `#copy:t` (id INT PRIMARY KEY)
CREATE TABLE `copy` (id INT PRIMARY KEY, `copy` INT)

@case tables of names that are hard to take
CREATE TABLE ` t` (id INT PRIMARY KEY)
INSERT INTO ` t` VALUES (1)
CREATE TABLE `a.b.c` (id INT PRIMARY KEY)
INSERT INTO `a.b.c` VALUES (1)
CREATE TABLE `CON` (id INT PRIMARY KEY)
CREATE TABLE `T` (id INT PRIMARY KEY)
CREATE TABLE `t` (id INT PRIMARY KEY, a INT)
INSERT INTO T VALUES (1)
INSERT INTO t VALUES (2, 2)
RENAME TABLE T TO x, t TO T, x TO t
DROP TABLE t
ALTER TABLE T RENAME TO t
CREATE TABLE `.` (id INT PRIMARY KEY)
INSERT INTO `.` VALUES (1)
CREATE TABLE `"` (id INT PRIMARY KEY)
ALTER TABLE `"` RENAME TO `""`
SET sql_mode = ANSI_QUOTES
ALTER TABLE """""" RENAME TO "`"
ALTER TABLE "`" RENAME TO "a"
