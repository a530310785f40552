// Clients of other character sets: their statements are logged in it.

@case latin1
@session main latin1
CREATE TABLE größe (id INT PRIMARY KEY, länge INT, höhe INT, v VARCHAR(20))
INSERT INTO größe VALUES (1, 2, 3, 'ß')
ALTER TABLE größe CHANGE länge höhe INT, CHANGE höhe länge INT
ALTER TABLE größe ADD ä VARCHAR(10) DEFAULT 'é', COMMENT 'ü'
CREATE TABLE häuser (id INT PRIMARY KEY) SELECT id FROM größe
CREATE TABLE wände LIKE größe
RENAME TABLE größe TO töne, wände TO größe
TRUNCATE TABLE töne
ALTER TABLE töne RENAME TO füße
SET binlog_format = STATEMENT
INSERT INTO füße (id, v) VALUES (5, 'ö')
UPDATE füße SET v = 'ä' WHERE v = 'ö'
CREATE TABLE öfen (id INT PRIMARY KEY) SELECT id FROM füße
DELETE FROM füße
CREATE OR REPLACE TABLE öfen (id INT PRIMARY KEY) SELECT 3 AS id
DROP TABLE öfen, häuser
SET sql_mode = ANSI_QUOTES
ALTER TABLE "füße" CHANGE "länge" "höhe" INT, CHANGE "höhe" "länge" INT
CREATE DATABASE dörfer
RENAME TABLE füße TO dörfer.füße
RENAME TABLE dörfer.füße TO arme
DROP DATABASE dörfer

@case sjis, whose second bytes are back slashes
@session main sjis
CREATE TABLE 表 (id INT PRIMARY KEY, ソ INT, 能 INT, v VARCHAR(20) CHARACTER SET utf8mb4)
INSERT INTO 表 VALUES (1, 2, 3, 'ソ')
ALTER TABLE 表 CHANGE ソ 能 INT, CHANGE 能 ソ INT
ALTER TABLE 表 COMMENT 'ソ', DROP ソ, ADD ソ INT DEFAULT 7
ALTER TABLE 表 COMMENT '表', DROP 能, ADD 能 INT DEFAULT 8
RENAME TABLE 表 TO 噂
CREATE TABLE 十 (id INT PRIMARY KEY) SELECT id FROM 噂
SET binlog_format = STATEMENT
INSERT INTO 噂 (id, v) VALUES (5, '表')
TRUNCATE TABLE 噂
DROP TABLE 十
RENAME TABLE 噂 TO 十

@case gbk, whose second bytes are back slashes and back quotes
@session main gbk
CREATE TABLE 運 (id INT PRIMARY KEY, 誠 INT, 縗 INT, v VARCHAR(20) CHARACTER SET utf8mb4)
INSERT INTO 運 VALUES (1, 2, 3, '誠')
ALTER TABLE 運 CHANGE 誠 縗 INT, CHANGE 縗 誠 INT
ALTER TABLE `運` COMMENT '誠', DROP 誠, ADD 誠 INT DEFAULT 7
ALTER TABLE `運` COMMENT '縗', DROP 縗, ADD `縗` INT DEFAULT 8
RENAME TABLE `運` TO `誠`
CREATE TABLE `籤` (id INT PRIMARY KEY) SELECT id FROM `誠`
ALTER TABLE `誠` COMMENT '運誠', RENAME TO `運`
DROP TABLE `籤`

@case big5, ujis, euckr, cp1251 and utf8
@session big big5
CREATE TABLE 功 (id INT PRIMARY KEY, 許 INT, 蓋 INT)
INSERT INTO 功 VALUES (1, 2, 3)
ALTER TABLE 功 CHANGE 許 蓋 INT, CHANGE 蓋 許 INT
ALTER TABLE 功 COMMENT '功', DROP 許, ADD 許 INT DEFAULT 7
@session ujis ujis
CREATE TABLE 表 (id INT PRIMARY KEY, 日本 INT, 語 INT)
INSERT INTO 表 VALUES (1, 2, 3)
ALTER TABLE 表 CHANGE 日本 語 INT, CHANGE 語 日本 INT
@session korean euckr
CREATE TABLE 한국 (id INT PRIMARY KEY, 말 INT, 글 INT)
INSERT INTO 한국 VALUES (1, 2, 3)
ALTER TABLE 한국 CHANGE 말 글 INT, CHANGE 글 말 INT
@session russian cp1251
CREATE TABLE таблица (id INT PRIMARY KEY, слово INT, дело INT)
INSERT INTO таблица VALUES (1, 2, 3)
ALTER TABLE таблица CHANGE слово дело INT, CHANGE дело слово INT
@session koi koi8r
ALTER TABLE таблица CHANGE слово дело INT, CHANGE дело слово INT
@session three utf8
ALTER TABLE таблица CHANGE слово дело INT, CHANGE дело слово INT
DROP TABLE 功, 表, 한국, таблица

@case texts of clients, logged as statements
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(50) CHARACTER SET utf8mb4)
@session a latin1
SET binlog_format = STATEMENT
INSERT INTO t VALUES (1, 'größe')
@session b sjis
SET binlog_format = STATEMENT
INSERT INTO t VALUES (2, '表ソ')
@session c gbk
SET binlog_format = STATEMENT
INSERT INTO t VALUES (3, '運誠')
UPDATE t SET v = CONCAT(v, '誠')

@case bytes that are no text
SET character_set_client = binary
CREATE TABLE t (id INT PRIMARY KEY, a INT)
ALTER TABLE t ADD größe INT DEFAULT 3
RENAME TABLE t TO ü
SET NAMES latin1
ALTER TABLE Ã¼ ADD x INT DEFAULT 1

@case a key that the server adds itself
@on mysql97
@session main sjis
SET sql_generate_invisible_primary_key = 1
CREATE TABLE 表 (ソ INT, v VARCHAR(20))
INSERT INTO 表 VALUES (1, 'x')
ALTER TABLE 表 CHANGE ソ 能 INT
@session b latin1
SET sql_generate_invisible_primary_key = 1
CREATE TABLE größe (ä INT)
INSERT INTO größe VALUES (1), (1)
CREATE TABLE töne LIKE größe
CREATE TEMPORARY TABLE x (ä INT PRIMARY KEY)
CREATE TABLE öfen LIKE x
INSERT INTO öfen VALUES (2)

@case texts that a server writes itself
@session main latin1
CREATE TABLE größe (id INT PRIMARY KEY, ä INT)
CREATE TEMPORARY TABLE ü (id INT PRIMARY KEY, ö INT)
CREATE TABLE töne LIKE ü
INSERT INTO töne VALUES (1, 1)
DROP TABLE ü, größe
DROP TABLE IF EXISTS nichts, töne
CREATE VIEW sicht AS SELECT 1 AS ä
DROP VIEW sicht
@session b sjis
CREATE TEMPORARY TABLE 表 (id INT PRIMARY KEY, ソ INT)
CREATE TABLE 能 LIKE 表
INSERT INTO 能 VALUES (1, 1)
DROP TABLE 能
