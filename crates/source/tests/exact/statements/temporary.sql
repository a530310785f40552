// Temporary tables: nobody's but the session's.

@case temporary tables hide real ones
CREATE TABLE t (id INT PRIMARY KEY, a INT)
INSERT INTO t VALUES (1, 1), (2, 2)
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
INSERT INTO t VALUES (50, 50)
UPDATE t SET b = 51
ALTER TABLE t ADD c INT
ALTER TABLE t CHANGE b a INT
TRUNCATE TABLE t
INSERT INTO t VALUES (60, 60, 60)
DELETE FROM t
DROP TABLE t
INSERT INTO t VALUES (3, 3)
CREATE TEMPORARY TABLE t SELECT * FROM t
DROP TEMPORARY TABLE t
CREATE TEMPORARY TABLE IF NOT EXISTS t (id INT)
CREATE OR REPLACE TEMPORARY TABLE t (id INT)
DROP TEMPORARY TABLE IF EXISTS t, nothing
TRUNCATE TABLE t

@case temporary and real tables are dropped together
CREATE TABLE t (id INT PRIMARY KEY)
CREATE TABLE u (id INT PRIMARY KEY)
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY)
CREATE TEMPORARY TABLE u (id INT PRIMARY KEY)
DROP TABLE x, t, u
DROP TABLE u
CREATE TABLE t (id INT PRIMARY KEY)
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)
CREATE TABLE u (id INT PRIMARY KEY)
DROP TABLE IF EXISTS nothing, t, u
DROP TABLE t

@case temporary tables of statements in statement format
CREATE TABLE t (id INT PRIMARY KEY, a INT)
SET binlog_format = STATEMENT
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a INT)
INSERT INTO t VALUES (1, 1)
ALTER TABLE t ADD b INT
TRUNCATE TABLE t
INSERT INTO t VALUES (2, 2, 2)
DROP TABLE t
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY, a INT)
INSERT INTO x VALUES (1, 1), (2, 2)
INSERT INTO t SELECT * FROM x
UPDATE t, x SET t.a = x.a + 5 WHERE t.id = x.id
CREATE TABLE u (id INT PRIMARY KEY) SELECT id FROM x
CREATE TABLE w LIKE x
DELETE t FROM t JOIN x USING (id) WHERE x.id = 1
ALTER TABLE x RENAME TO y
RENAME TABLE y TO z
CREATE INDEX i ON z (a)
DROP INDEX i ON z
DROP TABLE z
SELECT 1

@case temporary tables are renamed among real ones
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT)
CREATE TABLE u (id INT PRIMARY KEY, a INT)
INSERT INTO t VALUES (1, 1)
INSERT INTO u VALUES (2, 2)
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY)
RENAME TABLE x TO y, t TO v
RENAME TABLE v TO t, y TO x
CREATE TEMPORARY TABLE u (id INT PRIMARY KEY)
RENAME TABLE u TO k
RENAME TABLE k TO m, u TO w
RENAME TABLE t TO s, m TO t, s TO r
INSERT INTO r VALUES (7, 7)
INSERT INTO w VALUES (7, 7)
ALTER TABLE t RENAME TO w
DROP TABLE w
INSERT INTO w VALUES (8, 8)

@case temporary tables end with their session
CREATE TABLE t (id INT PRIMARY KEY)
@session b
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)
INSERT INTO t VALUES (5)
@session main
INSERT INTO t VALUES (1)
@session b
SET binlog_format = MIXED
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY)
KILL CONNECTION_ID()
@session main
INSERT INTO t VALUES (2)
@wait 0.2
INSERT INTO t VALUES (3)

@case made from a temporary table
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY, v VARCHAR(20))
INSERT INTO x VALUES (1, 'x')
CREATE TABLE t LIKE x
INSERT INTO t SELECT * FROM x
CREATE TABLE IF NOT EXISTS t LIKE x
CREATE OR REPLACE TABLE t LIKE x
CREATE TABLE u (PRIMARY KEY (id)) SELECT * FROM x
CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY) SELECT * FROM x

@case temporary tables that are not logged are changed by statements that are
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT)
INSERT INTO t VALUES (1, 2, 3)
INSERT INTO u VALUES (4, 5, 6)
@session b
SET binlog_format = 'MIXED'
CREATE TEMPORARY TABLE v (id INT PRIMARY KEY, a INT, b INT)
ALTER TABLE v RENAME TO t
TRUNCATE TABLE t
ALTER TABLE t RENAME TO u
ALTER TABLE u CHANGE a b INT, CHANGE b a INT
TRUNCATE TABLE u
@session main
INSERT INTO t VALUES (11, 2, 3)
INSERT INTO u VALUES (14, 5, 6)
TRUNCATE TABLE t
ALTER TABLE u CHANGE a b INT, CHANGE b a INT
@session c
SET binlog_format = 'STATEMENT'
CREATE TEMPORARY TABLE v (id INT PRIMARY KEY, a INT, b INT)
ALTER TABLE v RENAME TO u
TRUNCATE TABLE u
ALTER TABLE u CHANGE a b INT, CHANGE b a INT

@case temporary tables that are not logged are renamed by statements that are
@on mariadb
CREATE TABLE a (id INT PRIMARY KEY, a INT)
CREATE TABLE b (id INT PRIMARY KEY, a INT)
CREATE TABLE c (id INT PRIMARY KEY, c VARCHAR(9))
INSERT INTO a VALUES (1, 1)
INSERT INTO b VALUES (2, 2)
INSERT INTO c VALUES (3, 'c')
@session b
SET binlog_format = 'ROW'
CREATE TEMPORARY TABLE a (id INT PRIMARY KEY, a INT)
CREATE TEMPORARY TABLE b (id INT PRIMARY KEY, a INT)
CREATE TEMPORARY TABLE c (id INT PRIMARY KEY, a INT)
RENAME TABLE a TO x, b TO a
RENAME TABLE a TO b, x TO a
RENAME TABLE a TO x, b TO a, x TO b
RENAME TABLE a TO x, c TO a, x TO c
@behind
RENAME TABLE a TO x, b TO a, x TO b
RENAME TABLE a TO x, c TO a, x TO c
RENAME TABLE a TO x, b TO a
@session main
INSERT INTO a VALUES (4, 4)
@compare
RENAME TABLE a TO x, b TO a, x TO b
RENAME TABLE a TO x, c TO a, x TO c
INSERT INTO c VALUES (5, 5)
@behind stalled
RENAME TABLE a TO x, b TO a
INSERT INTO x VALUES (6, 'x')
DROP TABLE a
RENAME TABLE x TO a, c TO b
@compare

// Names of temporary tables are remembered, so the next two cases have names of their own.
@case a temporary table's new name counts after a restart
CREATE TABLE renamed (id INT PRIMARY KEY, a INT)
INSERT INTO renamed VALUES (1, 1)
@session b
SET binlog_format = 'STATEMENT'
CREATE TEMPORARY TABLE x (id INT PRIMARY KEY, a INT)
ALTER TABLE x RENAME TO renamed
@behind
TRUNCATE TABLE renamed
@compare
ALTER TABLE renamed CHANGE a b INT
@session main
TRUNCATE TABLE renamed

@case temporary tables whose making is not logged are emptied and altered
CREATE TABLE emptied (id INT PRIMARY KEY, a INT, b INT)
CREATE TABLE altered (id INT PRIMARY KEY, a INT, b INT)
INSERT INTO emptied VALUES (1, 2, 3)
INSERT INTO altered VALUES (4, 5, 6)
@session b
SET binlog_format = 'STATEMENT'
SET sql_log_bin = 0
CREATE TEMPORARY TABLE emptied (id INT PRIMARY KEY, a INT, b INT)
CREATE TEMPORARY TABLE altered (id INT PRIMARY KEY, a INT, b INT)
SET sql_log_bin = 1
TRUNCATE TABLE emptied
ALTER TABLE altered CHANGE a b INT, CHANGE b a INT
@session main
INSERT INTO emptied VALUES (7, 8, 9)
INSERT INTO altered VALUES (7, 8, 9)
TRUNCATE TABLE emptied

@case a temporary table takes a name that no lasting one has
CREATE TABLE t (id INT PRIMARY KEY, a INT)
INSERT INTO t VALUES (1, 1)
@session b
SET binlog_format = 'STATEMENT'
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
ALTER TABLE t RENAME TO u
ALTER TABLE u RENAME TO w, ADD c INT
@session main
INSERT INTO t VALUES (2, 2)
@session c
SET binlog_format = 'STATEMENT'
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
@behind
ALTER TABLE t RENAME TO u
@session main
INSERT INTO t VALUES (3, 3)
ALTER TABLE t ADD c INT
@compare
@session d
SET binlog_format = 'STATEMENT'
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
@behind stalled
ALTER TABLE t RENAME TO u
@session main
ALTER TABLE t DROP c
INSERT INTO t VALUES (4, 4)
@compare

@case a lasting table takes a name that another has by the time it is read
@on mariadb
CREATE TABLE a (id INT PRIMARY KEY, a INT)
CREATE TABLE b LIKE a
INSERT INTO a VALUES (1, 1)
INSERT INTO b VALUES (2, 2)
@behind
RENAME TABLE a TO x, b TO a
CREATE TABLE b (id INT PRIMARY KEY)
@compare
INSERT INTO a VALUES (3, 3)
@behind stalled
RENAME TABLE a TO y, x TO a
CREATE TABLE x (id INT PRIMARY KEY)
@compare
INSERT INTO a VALUES (4, 4)

@case a temporary table is renamed while the lasting one of its name is altered
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT, c INT, d INT)
INSERT INTO t VALUES (1, 1, 1, 1)
@session b
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
@behind stalled
@session main
ALTER TABLE t DROP c
@session b
RENAME TABLE t TO u
@session main
ALTER TABLE t DROP d
INSERT INTO t VALUES (3, 3)
@compare

@case a temporary table is renamed to a lasting one's name while that of its old name is altered
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT)
INSERT INTO t VALUES (1, 1)
CREATE TABLE u (id INT PRIMARY KEY, a INT, c INT DEFAULT 5)
@session b
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, b INT)
@behind
@session main
ALTER TABLE t ADD c INT
@session b
RENAME TABLE t TO u
@compare

@case a temporary table is renamed before the lasting one of its old name is replaced
@on mariadb
CREATE TABLE a (id INT PRIMARY KEY, a INT)
CREATE TABLE b (id INT PRIMARY KEY, b INT)
INSERT INTO a VALUES (1, 1)
INSERT INTO b VALUES (2, 2)
@session b
CREATE TEMPORARY TABLE a (id INT PRIMARY KEY)
@behind
RENAME TABLE a TO b
@session main
CREATE OR REPLACE TABLE a (id INT PRIMARY KEY, c INT)
@compare
@session b
RENAME TABLE b TO a
@behind stalled
RENAME TABLE a TO x
@session main
CREATE OR REPLACE TABLE a (id INT PRIMARY KEY, d INT)
@compare
RENAME TABLE a TO y
@behind
RENAME TABLE y TO a
CREATE TABLE y (id INT PRIMARY KEY, e INT)
INSERT INTO a VALUES (3, 3)
@compare
INSERT INTO y VALUES (4, 4)
