INSERT INTO country (name) VALUES ('Norge'), ('日本'), ('Türkiye'), ('Česko'), ('Côte d’Ivoire');
INSERT INTO address (street, district, country_id, phone, location) VALUES
  ('1 Harbour Road', 'Møre', 1, '', ST_GeomFromText('POINT(62.47 6.15)')),
  ('港区2-3', 'Tokyo', 2, '0312345678', ST_GeomFromText('POINT(35.65 139.75)')),
  ('O''Neill''s Quay 7', '', 3, '12', ST_GeomFromText('LINESTRING(1 1, 2 2)'));
INSERT INTO performer (first_name, last_name) VALUES
  ('INGRID', 'ØDEGÅRD'), ('JOSÉ', 'PEÑA'), ('ANNA', 'MÜLLER'), ('TOM', 'O''DELL');
INSERT INTO film (title, description, released, rating, extras, minutes) VALUES
  ('Deep Reef', 'A diver and a shark must find a pearl in the coral sea', 1999, 'PG', 'Trailers', 93),
  ('深海の夜', '潜水艦と鯨の物語', 2015, 'G', 'Trailers,Deleted Scenes', 121),
  ('Ålesund', NULL, 1901, 'R', '', 45),
  ('Remora', 'A fish that holds on to what is larger. A story of patience', 2024, NULL, NULL, NULL),
  ('Tide & Time', 'A boat, a storm; a lighthouse. 🐟🌊', 2155, 'NC-17', 'Behind the Scenes', 60);
INSERT INTO film_performer VALUES (1, 1), (1, 2), (2, 1), (3, 5), (4, 4), (2, 5);
INSERT INTO customer (name, email, address_id, active, picture, created) VALUES
  ('MARY SMITH', 'mary@example.org', 1, TRUE, X'89504E470D0A1A0A00', '2006-02-14 22:04:36'),
  ('さくら', NULL, 2, FALSE, NULL, '2006-02-14 22:04:37'),
  ('Zoë', '', 3, TRUE, '', '2006-02-14 22:04:38');
CALL lend(1, 1);
CALL lend(2, 1);
CALL lend(5, 3);
