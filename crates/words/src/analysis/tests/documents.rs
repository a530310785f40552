//! Expected keywords of documents, read from index files of Sphinx 2.2.11.

use super::Case;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case { name: "0sw", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw")], files: &[("sw", "the of Running a-b xy\n")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "2:runs 8:abc 9:runs 10:in 13:park"),
    ] },
    Case { name: "0sws", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw"), ("morphology", "stem_en")], files: &[("sw", "the of Running a-b xy\n")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "8:abc 10:in 13:park"),
    ] },
    Case { name: "0swu", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw"), ("morphology", "stem_en"), ("stopwords_unstemmed", "1")], files: &[("sw", "the of Running a-b xy\n")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "2:run 5:a 6:b 8:abc 9:run 10:in 12:a 13:park"),
    ] },
    Case { name: "0sw0", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw2"), ("stopword_step", "0")], files: &[("sw2", "the of")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "1:runs 2:running 3:a 4:b 5:xy 6:abc 7:runs 8:in 9:a 10:park"),
    ] },
    Case { name: "0ov0", settings: &[("charset_table", "sphinx22"), ("min_word_len", "3"), ("overshort_step", "0")], files: &[], texts: &[
        ("the runs of running a b xy abc runs in the a park", "1:the 2:runs 3:running 4:abc 5:runs 6:the 7:park"),
    ] },
    Case { name: "0swo", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw"), ("min_word_len", "3")], files: &[("sw", "the of Running a-b xy\n")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "2:runs 8:abc 9:runs 13:park"),
    ] },
    Case { name: "0swe", settings: &[("charset_table", "sphinx22"), ("stopwords", "sw"), ("morphology", "stem_en"), ("index_exact_words", "1")], files: &[("sw", "the of Running a-b xy\n")], texts: &[
        ("the runs of running a b xy abc runs in the a park", "8:=abc 8:abc 10:=in 10:in 13:=park 13:park"),
    ] },
    Case { name: "0wf", settings: &[("charset_table", "sphinx22"), ("wordforms", "wf")], files: &[("wf", "walks > walk\nu s a > usa\ncore 2 duo => c2d\ne8500 > intel duo core\nrunning > jog\n# comment\n~jump > leap\n~run fast > sprint\nnew york city > nyc\nnew york > ny\nA-B > ab\nFoo > bar # comment\none > two\ntwo > three\nev'er > never\n")], texts: &[
        ("walks U.S.A. core 2 duo, e8500 running runs jumping jump running fast runs fast new york city new york giants new jersey a b foo one two ev er core 2 core u s", "1:walk 2:usa 3:c2d 4:intel 5:duo 6:core 7:jog 8:runs 9:jumping 10:leap 11:jog 12:fast 13:runs 14:fast 15:nyc 16:ny 17:giants 18:new 19:jersey 20:ab 21:bar 22:# 23:comment 24:two 25:three 26:never 27:core 28:2 29:core 30:u 31:s"),
    ] },
    Case { name: "0wfs", settings: &[("charset_table", "sphinx22"), ("wordforms", "wf"), ("morphology", "stem_en")], files: &[("wf", "walks > walk\nu s a > usa\ncore 2 duo => c2d\ne8500 > intel duo core\nrunning > jog\n# comment\n~jump > leap\n~run fast > sprint\nnew york city > nyc\nnew york > ny\nA-B > ab\nFoo > bar # comment\none > two\ntwo > three\nev'er > never\n")], texts: &[
        ("walks U.S.A. core 2 duo, e8500 running runs jumping jump running fast runs fast new york city new york giants new jersey a b foo one two ev er core 2 core u s", "1:walk 2:usa 3:c2d 4:intel 5:duo 6:core 7:jog 8:run 9:leap 10:leap 11:jog 12:fast 13:run 14:fast 15:nyc 16:ny 17:giant 18:new 19:jersey 20:ab 21:bar 22:# 23:comment 24:two 25:three 26:never 27:core 28:2 29:core 30:u 31:s"),
    ] },
    Case { name: "0wfe", settings: &[("charset_table", "sphinx22"), ("wordforms", "wf"), ("morphology", "stem_en"), ("index_exact_words", "1")], files: &[("wf", "walks > walk\nu s a > usa\ncore 2 duo => c2d\ne8500 > intel duo core\nrunning > jog\n# comment\n~jump > leap\n~run fast > sprint\nnew york city > nyc\nnew york > ny\nA-B > ab\nFoo > bar # comment\none > two\ntwo > three\nev'er > never\n")], texts: &[
        ("walks U.S.A. core 2 duo, e8500 running runs jumping jump running fast runs fast new york city new york giants new jersey a b foo one two ev er core 2 core u s", "1:=walks 1:walk 2:=usa 2:usa 3:=c2d 3:c2d 4:=intel 4:intel 5:=duo 5:duo 6:=core 6:core 7:=running 7:jog 8:=runs 8:run 9:=jumping 9:leap 10:=jump 10:leap 11:=running 11:jog 12:=fast 12:fast 13:=runs 13:run 14:=fast 14:fast 15:=nyc 15:nyc 16:=ny 16:ny 17:=giants 17:giant 18:=new 18:new 19:=jersey 19:jersey 20:=ab 20:ab 21:=bar 21:bar 22:# 22:=# 23:=comment 23:comment 24:=one 24:two 25:=two 25:three 26:=never 26:never 27:=core 27:core 28:2 28:=2 29:=core 29:core 30:=u 30:u 31:=s 31:s"),
    ] },
    Case { name: "0wfo", settings: &[("charset_table", "sphinx22"), ("wordforms", "wf"), ("min_word_len", "2")], files: &[("wf", "walks > walk\nu s a > usa\ncore 2 duo => c2d\ne8500 > intel duo core\nrunning > jog\n# comment\n~jump > leap\n~run fast > sprint\nnew york city > nyc\nnew york > ny\nA-B > ab\nFoo > bar # comment\none > two\ntwo > three\nev'er > never\n")], texts: &[
        ("walks U.S.A. core 2 duo, e8500 running runs jumping jump running fast runs fast new york city new york giants new jersey a b foo one two ev er core 2 core u s", "1:walk 3:c2d 4:intel 5:duo 6:core 7:jog 8:runs 9:jumping 10:leap 11:jog 12:fast 13:runs 14:fast 15:nyc 16:ny 17:giants 18:new 19:jersey 22:bar 25:# 28:comment 29:two 30:three 31:never 32:core 34:core"),
    ] },
    Case { name: "0wfsw", settings: &[("charset_table", "sphinx22"), ("wordforms", "wf"), ("stopwords", "sw3")], files: &[("wf", "walks > walk\nu s a > usa\ncore 2 duo => c2d\ne8500 > intel duo core\nrunning > jog\n# comment\n~jump > leap\n~run fast > sprint\nnew york city > nyc\nnew york > ny\nA-B > ab\nFoo > bar # comment\none > two\ntwo > three\nev'er > never\n"), ("sw3", "two ny jog duo")], texts: &[
        ("walks U.S.A. core 2 duo, e8500 running runs jumping jump running fast runs fast new york city new york giants new jersey a b foo one two ev er core 2 core u s", "1:walk 2:usa 3:c2d 5:intel 6:core 8:runs 9:jumping 10:leap 12:fast 13:runs 14:fast 15:nyc 17:giants 18:new 19:jersey 20:ab 21:bar 22:# 23:comment 26:never 27:c2d 28:core 29:u 30:s"),
    ] },
    Case { name: "0ex", settings: &[("charset_table", "sphinx22"), ("exceptions", "ex")], files: &[("ex", "C++ => cplusplus\nAT & T => AT&T\nthe who => the_who\n.NET => dotnet\nnew york  =>  NYC City\nR&D => rnd\n\\=> => arrow\n")], texts: &[
        ("C++ c++ C++11 AT & T AT  &  T AT&T the who the  who the whole .NET ASP.NET a.NET new york\tx new york R&D R&Dx xR&D => C++-C++ (C++) C++, the whoC++", "1:cplusplus 2:c 3:cplusplus 4:11 5:AT&T 6:AT&T 7:at 8:t 9:the_who 10:the_who 11:the 12:whole 13:dotnet 14:asp 15:net 16:a 17:net 18:NYC City 19:x 20:NYC City 21:rnd 22:r 23:dx 24:xr 25:d 26:cplusplus 27:cplusplus 28:cplusplus 29:cplusplus 30:the 31:whoc"),
    ] },
    Case { name: "0exs", settings: &[("charset_table", "sphinx22"), ("exceptions", "ex"), ("morphology", "stem_en"), ("index_exact_words", "1"), ("blend_chars", "+,&,.")], files: &[("ex", "C++ => cplusplus\nAT & T => AT&T\nthe who => the_who\n.NET => dotnet\nnew york  =>  NYC City\nR&D => rnd\n\\=> => arrow\n")], texts: &[
        ("C++ c++ C++11 AT & T AT  &  T AT&T the who the  who the whole .NET ASP.NET a.NET new york\tx new york R&D R&Dx xR&D => C++-C++ (C++) C++, the whoC++", "1:=c 1:=c++ 1:=cplusplus 1:c 1:c++ 1:cplusplus 2:=c++11 2:=cplusplus 2:c++11 2:cplusplus 3:11 3:=11 4:=AT&T 4:AT&T 5:=AT&T 5:AT&T 6:=at 6:=at&t 6:at 6:at&t 7:=t 7:t 8:=the_who 8:the_who 9:=the_who 9:the_who 10:=the 10:the 11:=whole 11:whole 12:=asp 12:=asp.net 12:=dotnet 12:asp 12:asp.net 12:dotnet 13:=net 13:net 14:=a 14:=a.net 14:a 14:a.net 15:=net 15:net 16:=NYC City 16:NYC Citi 17:=x 17:x 18:=NYC City 18:NYC Citi 19:=r 19:=r&dx 19:=rnd 19:r 19:r&dx 19:rnd 20:=dx 20:dx 21:=xr 21:=xr&d 21:xr 21:xr&d 22:=d 22:d 23:=cplusplus 23:=the 23:cplusplus 23:the 24:=whoc 24:=whoc++ 24:whoc 24:whoc++"),
    ] },
    Case { name: "1bm0", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_none")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c& 5:b 6:c 7:& 8:&& 9:a 9:a& 10:b 10:b&&c 11:c 12:&a& 12:a 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end& 17:end 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm1", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_head")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:t 4:a 4:a&b&c& 5:b 6:c 7:& 8:&& 9:a 9:a& 10:b 10:b&&c 11:c 12:a 12:a& 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:end 17:end& 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm2", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_tail")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c 5:b 6:c 7:& 8:&& 9:a 10:b 10:b&&c 11:c 12:&a 12:a 13:x 14:y 15:1 15:1&2 16:2 17:&end 17:end 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm3", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_both")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:t 4:a 4:a&b&c 5:b 6:c 7:& 8:&& 9:a 10:b 10:b&&c 11:c 12:a 13:x 14:y 15:1 15:1&2 16:2 17:end 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm4", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_none,trim_both")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c 4:a&b&c& 5:b 6:c 7:& 8:&& 9:a 9:a& 10:b 10:b&&c 11:c 12:&a& 12:a 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end& 17:end 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm5", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_none, skip_pure")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c& 5:b 6:c 7:a 7:a& 8:b 8:b&&c 9:c 10:&a& 10:a 11:x 11:x& 12:y 13:1 13:1&2 14:2 15:&end& 15:end 16:a 16:a&-b 17:b 18:at 18:at&t 19:t"),
    ] },
    Case { name: "1bm6", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_both, trim_none")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c 4:a&b&c& 5:b 6:c 7:& 8:&& 9:a 9:a& 10:b 10:b&&c 11:c 12:&a& 12:a 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end& 17:end 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm7", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "trim_head, trim_tail")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c 4:a&b&c& 5:b 6:c 7:& 8:&& 9:a 9:a& 10:b 10:b&&c 11:c 12:&a 12:a 12:a& 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end 17:end 17:end& 18:a 18:a&-b 19:b 20:at 20:at&t 21:t"),
    ] },
    Case { name: "1bm8", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&, -"), ("blend_mode", "skip_pure, trim_both, trim_tail, trim_none")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:t 3:&t 3:t 4:a 4:a&b&c 4:a&b&c& 5:b 6:c 7:a 7:a& 8:b 8:b&&c 9:c 10:&a 10:&a& 10:a 11:x 11:x& 12:y 13:1 13:1&2 14:2 15:&end 15:&end& 15:end 16:a 16:a&-b 17:b 18:at 18:at&t 19:t"),
    ] },
    Case { name: "1bw", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("min_word_len", "2")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 3:&t 4:a&b&c& 8:&& 9:a& 10:b&&c 12:&a& 13:x& 15:1&2 17:&end& 17:end 18:a& 20:at 20:at&t"),
    ] },
    Case { name: "1bws", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("min_word_len", "2"), ("overshort_step", "0")], files: &[], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at 1:at&t 2:&& 2:&t 2:a&b&c& 3:&a& 3:&end& 3:1&2 3:a& 3:b&&c 3:end 3:x& 4:a& 4:at 4:at&t"),
    ] },
    Case { name: "1bx", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("morphology", "stem_en"), ("index_exact_words", "1")], files: &[], texts: &[
        ("runs&dogs running& cats", "1:=runs 1:=runs&dogs 1:run 1:runs&dog 2:=dogs 2:dog 3:=running 3:=running& 3:run 3:running& 4:=cats 4:cat"),
    ] },
    Case { name: "1bst", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("stopwords", "sw5")], files: &[("sw5", "at a&b c")], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t", "1:at&t 2:t 3:&t 3:t 4:a&b&c& 7:& 8:&& 9:a& 10:b&&c 12:&a& 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end& 17:end 18:a& 20:at&t 21:t"),
    ] },
    Case { name: "1bwf", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("wordforms", "wf6")], files: &[("wf6", "at&t > telco\nb > bee\n1&2 x > y\nnew york > ny\nx&y > z\nt > tee\n")], texts: &[
        ("AT&T &t a&b&c& & && a& b&&c &a& x&!y 1&2 &end& a&-b AT&t new york new&york b", "1:at 1:telco 2:tee 3:&t 3:tee 4:a 4:a&b&c& 5:bee 6:c 7:& 8:&& 9:a 9:a& 10:b&&c 10:bee 11:c 12:&a& 12:a 13:x 13:x& 14:y 15:1 15:1&2 16:2 17:&end& 17:end 18:a 18:a& 19:bee 20:at 20:telco 21:tee 22:ny 23:new 23:ny 24:york 25:bee"),
    ] },
    Case { name: "1bexc", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&,+,."), ("exceptions", "ex5")], files: &[("ex5", "C++ => cplusplus\nR&D => rnd\nAT & T => AT&T\nx y z => xyz\n")], texts: &[
        ("C++ x C++ c++ a&b AT & T&x R&D.x y", "1:cplusplus 1:x 2:c 2:c++ 2:cplusplus 3:a 3:a&b 4:b 5:AT&T 6:&x 6:x 7:r&d.x 7:rnd 8:x 9:y"),
    ] },
    Case { name: "1ign", settings: &[("charset_table", "sphinx22"), ("ignore_chars", "U+AD, -")], files: &[], texts: &[
        ("so\u{ad}ft a-b -a- x--y - \u{ad} end", "1:soft 2:ab 3:a 4:xy 5:end"),
    ] },
    Case { name: "1ignb", settings: &[("charset_table", "sphinx22"), ("ignore_chars", "-"), ("blend_chars", "&")], files: &[], texts: &[
        ("a-&b a&-b a - b", "1:a 1:a&b 2:b 3:a 3:a&b 4:b 5:a 6:b"),
    ] },
    Case { name: "1ng", settings: &[("charset_table", "sphinx22"), ("ngram_len", "1"), ("ngram_chars", "U+3000..U+2FA1F")], files: &[], texts: &[
        ("abc日本語def 日 x日y 日本 ７", "1:abc 2:日 3:本 4:語 5:def 6:日 7:x 8:日 9:y 10:日 11:本 12:７"),
    ] },
    Case { name: "1ngw", settings: &[("charset_table", "sphinx22"), ("ngram_len", "1"), ("ngram_chars", "U+3000..U+2FA1F"), ("min_word_len", "3")], files: &[], texts: &[
        ("ab日本語def 日 x日y", "2:日 3:本 4:語 5:def 6:日 8:日"),
    ] },
    Case { name: "1ngb", settings: &[("charset_table", "sphinx22"), ("ngram_len", "1"), ("ngram_chars", "U+3000..U+2FA1F"), ("blend_chars", "&")], files: &[], texts: &[
        ("a&日本 日&b x&y日", "1:a 1:a& 2:日 3:本 4:日 5:&b 5:b 6:x 6:x&y 7:y 8:日"),
    ] },
    Case { name: "1ngs", settings: &[("charset_table", "sphinx22"), ("ngram_len", "1"), ("ngram_chars", "U+3000..U+2FA1F"), ("stopwords", "sw6")], files: &[("sw6", "本 abc")], texts: &[
        ("日本語 abc", "1:日 3:語"),
    ] },
    Case { name: "1ngf", settings: &[("charset_table", "sphinx22"), ("ngram_len", "1"), ("ngram_chars", "U+3000..U+2FA1F"), ("wordforms", "wf7")], files: &[("wf7", "日本 > japan\n語 > lang\n")], texts: &[
        ("日本語 日 本 x語", "1:japan 2:lang 3:japan 4:x 5:lang"),
    ] },
    Case { name: "1st", settings: &[("morphology", "stem_en"), ("charset_table", "0..9, A..Z->a..z, _, a..z, U+E9, U+2D")], files: &[], texts: &[
        ("running1 1running running_ _running été-running runnings running-dogs sky's ies a is ss ties y by sing thing", "1:running1 2:1run 3:running_ 4:_run 5:été-run 6:run 7:running-dog 8:sky 9:s 10:i 11:a 12:is 13:ss 14:tie 15:y 16:by 17:sing 18:thing"),
    ] },
    Case { name: "1mlen", settings: &[("charset_table", "sphinx22"), ("min_stemming_len", "5"), ("morphology", "stem_en")], files: &[], texts: &[
        ("cats dogs horses runs running", "1:cats 2:dogs 3:hors 4:runs 5:run"),
    ] },
    Case { name: "1sdx", settings: &[("charset_table", "sphinx22"), ("morphology", "soundex")], files: &[], texts: &[
        ("robert rupert ashcraft tymczak pfister honeyman a1b 12 a ab привет lloyd jackson wh bcd éa", "1:r163 2:r163 3:a2613 4:t520 5:p1236 6:h500 7:a1b 8:12 9:a 10:a1 11:привет 12:l430 13:j250 14:w0 15:b23 16:a"),
    ] },
    Case { name: "1sdxru", settings: &[("charset_table", "sphinx22"), ("morphology", "stem_ru,soundex")], files: &[], texts: &[
        ("robert Привет стали running", "1:r163 2:привет 3:стал 4:r520"),
    ] },
    Case { name: "1list2", settings: &[("charset_table", "sphinx22"), ("morphology", "soundex, stem_en")], files: &[], texts: &[
        ("running dog robert sky", "1:r520 2:d20 3:r163 4:s20"),
    ] },
    Case { name: "1enru", settings: &[("charset_table", "sphinx22"), ("morphology", "stem_enru")], files: &[], texts: &[
        ("running красивая", "1:run 2:красив"),
    ] },
    Case { name: "1exc0", settings: &[("charset_table", "sphinx22"), ("exceptions", "ex5"), ("morphology", "stem_en"), ("stopwords", "sw8"), ("min_word_len", "5")], files: &[("ex5", "C++ => cplusplus\nR&D => rnd\nAT & T => AT&T\nx y z => xyz\n"), ("sw8", "rnd")], texts: &[
        ("R&D C++ x y z AT & T", "1:rnd 2:cplusplus 3:xyz 4:AT&T"),
    ] },
    Case { name: "1nl", settings: &[("charset_table", "sphinx22")], files: &[], texts: &[
        ("one\ntwo\u{2028}three\u{feff}four \u{200b}five", "1:one 2:two 3:three 4:four 5:five"),
    ] },
    Case { name: "2len", settings: &[("charset_table", "sphinx22"), ("stopwords", "s61"), ("min_word_len", "2"), ("blend_chars", "&")], files: &[("s61", "the of")], texts: &[
        ("cat the dog", "1:cat 3:dog"),
        ("cat the", "1:cat"),
        ("the cat of the", "2:cat"),
        ("AT&TT x a b", "1:at 1:at&tt 2:tt"),
        ("a&bb", "1:a&bb 1:bb"),
        ("bb a", "1:bb"),
        ("&& x&", "1:&& 2:x&"),
        ("the", ""),
        ("", ""),
    ] },
    Case { name: "2bst2", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("stopwords", "s62"), ("index_exact_words", "1"), ("morphology", "stem_en")], files: &[("s62", "a&b q")], texts: &[
        ("zz a&b xx", "1:=zz 1:zz 5:=xx 5:xx"),
        ("q& yy", "1:=q& 1:q& 2:=yy 2:yy"),
        ("zz a&b a b", "1:=zz 1:zz"),
    ] },
    Case { name: "2bst0", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("stopwords", "s62"), ("stopword_step", "0")], files: &[("s62", "a&b q")], texts: &[
        ("zz a&b xx", "1:zz 2:xx"),
        ("q& yy", "1:q& 1:yy"),
        ("zz q&r w", "1:zz 2:q&r 2:r 3:w"),
    ] },
    Case { name: "2bwf2", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&"), ("wordforms", "wf62"), ("index_exact_words", "1")], files: &[("wf62", "new york > ny\na b > ab\nx&y > z\nm n o > mno\none > uno dos\np&q r > pqr\nat&t > telco\n")], texts: &[
        ("new&york", "1:=new 1:=ny 1:new 1:ny 2:=york 2:york"),
        ("new york&x", "1:=new 1:new 2:=york 2:=york&x 2:york 2:york&x 3:=x 3:x"),
        ("q new&york x", "1:=q 1:q 2:=new 2:=ny 2:new 2:ny 3:=york 3:york 4:=x 4:x"),
        ("new&york city", "1:=new 1:=ny 1:new 1:ny 2:=york 2:york 3:=city 3:city"),
        ("x&y", "1:=x 1:=x&y 1:x 1:z 2:=y 2:y"),
        ("a&b&c", "1:=a 1:=a&b&c 1:a 1:a&b&c 2:=b 2:b 3:=c 3:c"),
        ("c&a&b", "1:=c 1:=c&a&b 1:c 1:c&a&b 2:=a 2:a 3:=b 3:b"),
        ("m n&o", "1:=m 1:m 2:=n 2:=n&o 2:n 2:n&o 3:=o 3:o"),
        ("m&n o", "1:=m 1:=m&n 1:m 1:m&n 2:=n 2:n 3:=o 3:o"),
        ("m&n&o", "1:=m 1:=mno 1:m 1:mno 2:=n 2:n 3:=o 3:o"),
        ("one&x", "1:=one 1:=one&x 1:one 1:one&x 2:=x 2:x"),
        ("x&one", "1:=x 1:=x&one 1:x 1:x&one 2:=one 2:one"),
        ("p&q r", "1:=p 1:=p&q 1:p 1:p&q 2:=q 2:q 3:=r 3:r"),
        ("AT&T at t", "1:=at 1:=at&t 1:at 1:telco 2:=t 2:t 3:=at 3:at 4:=t 4:t"),
    ] },
    Case { name: "2wfm", settings: &[("charset_table", "sphinx22"), ("morphology", "stem_en"), ("index_exact_words", "1"), ("wordforms", "wf63"), ("stopwords", "s63")], files: &[("wf63", "snd > running shoes\nq r > running\nhi > running dogs\none two > one\none > uno\nthe cat > feline\ncat => catses\nw=>v\nu>tt\nempty > \n~run > go\n~ dog > wolf\nfoo bar > baz\nfoo bar qux > long\nfoo > short\nkk ll > stopp\nk-k > kk\nk-k m > kkm\n"), ("s63", "the stopp")], texts: &[
        ("snd", "1:=running 1:running 2:=shoes 2:shoe"),
        ("q r", "1:=running 1:running"),
        ("hi", "1:=running 1:running 2:=dogs 2:wolf"),
        ("one two", "1:=one 1:uno"),
        ("one", "1:=one 1:uno"),
        ("the cat", "2:=cat 2:catses"),
        ("cat", "1:=cat 1:catses"),
        ("w", "1:=w 1:v"),
        ("u", "1:=u 1:tt"),
        ("empty", "1:=empty 1:empti"),
        ("running", "1:=running 1:running"),
        ("dogs", "1:=dogs 1:wolf"),
        ("foo bar", "1:=baz 1:baz"),
        ("foo bar qux", "1:=long 1:long"),
        ("foo", "1:=foo 1:short"),
        ("foo bar foo bar qux", "1:=baz 1:baz 2:=long 2:long"),
        ("kk ll x", "2:=x 2:x"),
        ("k k", "1:=kk 1:kk"),
        ("k k m", "1:=kkm 1:kkm"),
        ("foo the bar", "1:=foo 1:short 3:=bar 3:bar"),
        ("foo, bar", "1:=baz 1:baz"),
        ("foo. bar! qux", "1:=long 1:long"),
    ] },
    Case { name: "2longb", settings: &[("charset_table", "sphinx22"), ("blend_chars", "&")], files: &[], texts: &[
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx&xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx e", "1:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 2:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 3:e"),
        ("a&xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx e", "1:a 1:a&xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 2:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 3:e"),
        ("éééééééééééééééééééééééééééééééééééééééééééééééééé 日日日", ""),
    ] },
    Case { name: "2ig2", settings: &[("charset_table", "sphinx22"), ("ignore_chars", "U+27"), ("min_word_len", "3")], files: &[], texts: &[
        ("it's o'b 'ab' a''''b", "1:its"),
    ] },
    Case { name: "2stf", settings: &[("charset_table", "sphinx22"), ("stopwords", "s65")], files: &[("s65", "# hash\nfoo, bar; baz=>qux The* end.")], texts: &[
        ("foo bar baz qux the hash end x", "8:x"),
    ] },
    Case { name: "3len", settings: &[("charset_table", "sphinx22"), ("min_word_len", "2"), ("blend_chars", "&")], files: &[], texts: &[
        ("cat the dog", "1:cat 2:the 3:dog"),
        ("AT&TT x a b", "1:at 1:at&tt 2:tt"),
        ("zz AT&TT", "1:zz 2:at 2:at&tt 3:tt"),
    ] },
    Case { name: "3wf7", settings: &[("charset_table", "sphinx22"), ("morphology", "stem_en"), ("wordforms", "wf71")], files: &[("wf71", "cat => catses\nq r > dogses\nm n > birdses fishses\nz=>y\n")], texts: &[
        ("cat", "1:catses"),
        ("catses", "1:cats"),
        ("q r", "1:dogses"),
        ("dogses", "1:dogses"),
        ("m n", "1:birds 2:fishs"),
        ("birdses", "1:birds"),
        ("z", "1:y"),
    ] },
    Case { name: "3wi", settings: &[("charset_table", "sphinx22"), ("min_infix_len", "2"), ("wordforms", "wf72")], files: &[("wf72", "cat > dog\n")], texts: &[
        ("cat", "1:dog"),
    ] },
    Case { name: "3mi", settings: &[("charset_table", "sphinx22"), ("min_infix_len", "2"), ("morphology", "stem_en")], files: &[], texts: &[
        ("cats", "1:=cats 1:cat"),
    ] },
    Case { name: "3mp", settings: &[("charset_table", "sphinx22"), ("min_prefix_len", "2"), ("morphology", "soundex")], files: &[], texts: &[
        ("cats", "1:=cats 1:c320"),
    ] },
    Case { name: "3mw4", settings: &[("charset_table", "sphinx22"), ("min_infix_len", "2"), ("min_word_len", "4")], files: &[], texts: &[
        ("cats", "1:cats"),
    ] },
    Case { name: "3h", settings: &[("charset_table", "sphinx22"), ("html_strip", "1"), ("html_index_attrs", "img=alt,title; a=title;"), ("html_remove_elements", "style, script")], files: &[], texts: &[
        ("a<b>b</b>c", "1:abc"),
        ("a<p>b</p>c", "1:a 2:b 3:c"),
        ("x &amp; y", "1:x 2:y"),
        ("&eacute;t&eacute; &#1087;&#x440; &bogus; &lt;b&gt;", "1:t 2:пр 3:bogus 4:b"),
        ("<img alt=\"one two\" src=\"three\" title=four>five <a title='six'>seven</a>", "1:one 2:two 3:four 4:five 5:six 6:seven"),
        ("a<style>b</style>c<script>d</script>e", "1:a 2:c 3:e"),
        ("a<!-- c --> b", "1:a 2:b"),
        ("a < b > c", "1:a 2:b 3:c"),
        ("1<2 x<y", "1:1 2:2 3:x"),
        ("<b", ""),
        ("a<b c", "1:a"),
        ("a&nbsp;b", "1:a 2:b"),
        ("foo<br/>bar", "1:foo 2:bar"),
        ("<?php x ?> y", "1:y"),
        ("a<!doctype html>b", "1:ab"),
        ("&ampx &amp;x &copy", "1:ampx 2:x 3:copy"),
        ("f<unknown>g", "1:f 2:g"),
        ("<a title=\"A & B\">x", "1:a 2:b 3:x"),
        ("a</b>c", "1:ac"),
        ("<p title=\"zz\">q", "1:q"),
        ("<B>bold</B>x", "1:boldx"),
        ("x<em class=\"a>b\">y</em>z", "1:xyz"),
        ("&#39;x&#65;bc", "1:xabc"),
        ("t<td>u", "1:t 2:u"),
        ("<script>a<b</script>c", "1:c"),
        ("<style>x", ""),
        ("a<i", "1:a"),
        ("<img alt=q/>z", "1:q 2:z"),
        ("<IMG ALT=\"Up\">w", "1:up 2:w"),
        ("it<b>'</b>s", "1:it 2:s"),
        ("<!-- x > y --> z", "1:z"),
        ("a<x:y>b", "1:a 2:b"),
    ] },
    Case { name: "3dflt", settings: &[("charset_table", "0..9, A..Z->a..z, _, a..z, U+410..U+42F->U+430..U+44F, U+430..U+44F, U+401->U+451, U+451")], files: &[], texts: &[
        ("Ёё", "1:ёё"),
    ] },
    Case { name: "3ru", settings: &[("charset_table", "sphinx22")], files: &[], texts: &[
        ("Ёлка ЁЖ ёж Ж", "1:ёлка 2:ёж 3:ёж 4:ж"),
    ] },
    Case { name: "3en", settings: &[("charset_table", "english, russian")], files: &[], texts: &[
        ("Ab_1 Ёж", "1:ab 2:ёж"),
    ] },
    Case { name: "3en2", settings: &[("charset_table", "0..9, english, _, russian")], files: &[], texts: &[
        ("Ab_1 Ёж", "1:ab_1 2:ёж"),
    ] },
    Case { name: "4a", settings: &[("charset_table", "sphinx22"), ("min_word_len", "4"), ("blend_chars", "&")], files: &[], texts: &[
        ("a&b cccc", "4:cccc"),
        ("& cccc", "2:cccc"),
        ("aaaa&b cccc", "1:aaaa 1:aaaa&b 3:cccc"),
        ("b&aaaa cccc", "1:aaaa 1:b&aaaa 2:cccc"),
        ("a&&&& cccc", "1:a&&&& 2:cccc"),
        ("a&&&b&&& cccc", "1:a&&&b&&& 3:cccc"),
    ] },
    Case { name: "4b", settings: &[("charset_table", "sphinx22"), ("min_word_len", "2"), ("blend_chars", "&"), ("blend_mode", "trim_both,trim_tail")], files: &[], texts: &[
        ("a& cc", "1:a 2:cc"),
        ("a&b cc", "1:a&b 3:cc"),
        ("&a& cc", "1:&a 1:a 2:cc"),
        ("aa& cc", "1:aa 2:cc"),
    ] },
    Case { name: "4c", settings: &[("charset_table", "sphinx22"), ("min_word_len", "2"), ("blend_chars", "&"), ("blend_mode", "trim_tail,trim_none")], files: &[], texts: &[
        ("a& cc", "1:a 1:a& 2:cc"),
        ("&& cc", "1:&& 2:cc"),
    ] },
    Case { name: "4d", settings: &[("charset_table", "sphinx22"), ("min_stemming_len", "4"), ("morphology", "stem_en, stem_ru")], files: &[], texts: &[
        ("cats ies tried стали еда дома", "1:cat 2:ies 3:tri 4:стал 5:еда 6:дом"),
    ] },
    Case { name: "4e", settings: &[("charset_table", "sphinx22"), ("wordforms", "w81")], files: &[("w81", "Foo > Bar Quux\n#x > y\nxx > yy # zz\nlong word > s\n")], texts: &[
        ("foo", "1:bar 2:quux"),
        ("foo bar", "1:bar 2:quux 3:bar"),
        ("a b", "1:a 2:b"),
        ("foo# bar", "1:bar 2:quux 3:bar"),
        ("x", "1:x"),
        ("xx", "1:yy 2:# 3:zz"),
        ("long word", "1:s"),
    ] },
    Case { name: "5a", settings: &[("charset_table", "sphinx22"), ("min_word_len", "4"), ("blend_chars", "&")], files: &[], texts: &[
        ("aaaa&b&cccc x dddd", "1:aaaa 1:aaaa&b&cccc 2:cccc 4:dddd"),
        ("b&aaaa&c&dddd eeee", "1:aaaa 1:b&aaaa&c&dddd 2:dddd 3:eeee"),
        ("x b&aaaa cccc", "2:aaaa 2:b&aaaa 3:cccc"),
        ("b&c&aaaa cccc", "1:aaaa 1:b&c&aaaa 2:cccc"),
        ("xxxx b&aaaa", "1:xxxx 2:aaaa 2:b&aaaa"),
        ("xxxx a aaaa&b&cccc", "1:xxxx 3:aaaa 3:aaaa&b&cccc 4:cccc"),
        ("a b&aaaa cccc", "2:aaaa 2:b&aaaa 3:cccc"),
    ] },
];
