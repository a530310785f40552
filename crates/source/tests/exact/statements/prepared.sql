// Statements that are the value of something.

@case EXECUTE IMMEDIATE
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
INSERT INTO t VALUES (1, 2, 3)
EXECUTE IMMEDIATE 'ALTER TABLE t CHANGE a b INT, CHANGE b a INT'
EXECUTE IMMEDIATE CONCAT('TRUNC', 'ATE TABLE t')
EXECUTE IMMEDIATE 'INSERT INTO t VALUES (?, ?, ?)' USING 1, 2, 3
@told u no primary key
EXECUTE IMMEDIATE 'CREATE TABLE u AS SELECT ? AS id, ? AS v' USING 1, 'it''s'
EXECUTE IMMEDIATE 'CREATE TABLE w (id INT PRIMARY KEY) SELECT ? AS id' USING 7
EXECUTE IMMEDIATE 'SET STATEMENT max_statement_time=5 FOR DELETE FROM t'
EXECUTE IMMEDIATE 'RENAME TABLE t TO v, w TO t'
EXECUTE IMMEDIATE 'DROP TABLE IF EXISTS v, u, nothing'

@case prepared definitions
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
INSERT INTO t VALUES (1, 2, 3)
PREPARE s FROM 'ALTER TABLE t CHANGE a b INT, CHANGE b a INT'
EXECUTE s
EXECUTE s
PREPARE s FROM 'TRUNCATE TABLE t'
EXECUTE s
SET @text = 'CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(20))'
PREPARE s FROM @text
EXECUTE s
PREPARE s FROM 'INSERT INTO u VALUES (?, ?)'
SET @a = 1, @b = 'x'
EXECUTE s USING @a, @b
PREPARE s FROM 'RENAME TABLE t TO v'
EXECUTE s
DEALLOCATE PREPARE s
PREPARE s FROM 'DROP TABLE v'
EXECUTE s
DROP PREPARE s

@case prepared, logged as statements
CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(30))
SET binlog_format = STATEMENT
PREPARE s FROM 'INSERT INTO t VALUES (?, ?, ?)'
SET @a = 1, @b = 2, @c = 'it''s'
EXECUTE s USING @a, @b, @c
SET @a = 2
EXECUTE s USING @a, @b, @c
PREPARE s FROM 'UPDATE t SET v = ? WHERE id = ?'
EXECUTE s USING @c, @a
INSERT INTO t VALUES (@a + 10, @b, @c)
INSERT INTO t VALUES (50, LAST_INSERT_ID(), RAND(7))
UPDATE t SET a = @a := @a + 1

@case SET STATEMENT in many forms
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
INSERT INTO t VALUES (1, 2, 3)
set statement max_statement_time = 5 for alter table t change a b int, change b a int
SET STATEMENT sql_mode='ANSI_QUOTES' FOR ALTER TABLE "t" CHANGE "a" "b" INT, CHANGE "b" "a" INT
SET STATEMENT sql_mode='ANSI_QUOTES', max_statement_time = 5 FOR ALTER TABLE "t" DROP "a", ADD "a" INT DEFAULT 4
/* c */ SET /* c */ STATEMENT /* c */ max_statement_time=1 /* FOR */ FOR /* c */ TRUNCATE /* c */ t
SET STATEMENT sql_mode = CONCAT('FOR', '') FOR INSERT INTO t VALUES (5, 5, 5)
SET STATEMENT max_statement_time=(SELECT 5) FOR INSERT INTO t VALUES (1, 2, 3)
SET STATEMENT character_set_client=latin1 FOR ALTER TABLE t ADD c INT DEFAULT 3
SET STATEMENT foreign_key_checks=0 FOR DROP TABLE t
SET STATEMENT foreign_key_checks=0 FOR CREATE OR REPLACE TABLE t (id INT PRIMARY KEY)
SET STATEMENT sql_log_bin=0 FOR INSERT INTO nothing VALUES (1)
SET STATEMENT max_statement_time=5 FOR CREATE TABLE u LIKE t
SET STATEMENT max_statement_time=5 FOR CREATE TABLE w (id INT PRIMARY KEY) SELECT 4 AS id
SET STATEMENT max_statement_time=5 FOR CREATE INDEX i ON t (id)
SET STATEMENT max_statement_time=5 FOR LOAD DATA INFILE '$FILES/rows.txt' INTO TABLE u (id, @a, @b, @c)
SET STATEMENT max_statement_time=5 FOR RENAME TABLE u TO v, w TO u
SET STATEMENT max_statement_time=5 FOR CREATE DATABASE other
SET STATEMENT max_statement_time=5 FOR RENAME TABLE v TO other.v
SET STATEMENT max_statement_time=5 FOR DROP DATABASE other
SET STATEMENT max_statement_time=5 FOR DROP DATABASE shop
CREATE DATABASE shop

@case SET STATEMENT and rows logged as statements
@on mariadb
CREATE TABLE t (id INT PRIMARY KEY, a INT)
SET binlog_format = STATEMENT
SET STATEMENT max_statement_time=5 FOR INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
SET STATEMENT max_statement_time=5 FOR UPDATE t SET a = a + 1
SET STATEMENT max_statement_time=5 FOR DELETE FROM t WHERE id = 1
SET STATEMENT max_statement_time=5 FOR REPLACE INTO t VALUES (2, 9)
SET STATEMENT max_statement_time=5 FOR LOAD DATA INFILE '$FILES/rows.txt' INTO TABLE t (id, a, @b, @c)
BEGIN
SET STATEMENT max_statement_time=5 FOR INSERT INTO t VALUES (10, 1)
COMMIT
