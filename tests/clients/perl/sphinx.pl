# Perl's client of SphinxAPI, Sphinx::Search as Debian packs it: all it can ask of a table of words.
# The table is the one that tests/clients/main.rs makes.
#
#   sphinx.pl PORT
use strict;
use warnings;
use Sphinx::Search;

my $port = shift;

sub client {
    my $client = Sphinx::Search->new;
    $client->SetServer('127.0.0.1', $port);
    return $client;
}

sub same {
    my ($what, $got, $expected) = @_;
    $got = 'nothing' unless defined $got;
    die "$what: '$got' instead of '$expected'\n" unless $got eq $expected;
}

# The rows of an answer: key, weight and the asked attributes.
sub rows {
    my ($client, $query, @attributes) = @_;
    my $answer = $client->Query($query, 'articles');
    die "$query: " . $client->GetLastError . "\n" unless $answer;
    my @rows;
    for my $match (@{ $answer->{matches} }) {
        my @values = map { ref $_ ? '[' . join(',', @$_) . ']' : $_ } @$match{ 'doc', 'weight', @attributes };
        push @rows, join ' ', @values;
    }
    same("$query: total", scalar @rows, $answer->{total_found});
    return join '; ', @rows;
}

my $client = client();
same('rows', rows($client, 'fox', 'year', 'price', 'author', 'tags'),
    '1 2500 2001 [1.5] ann [1,2]; 2 2500 2002 [2.5] bob [2,3]');
$client->SetSortMode(SPH_SORT_ATTR_DESC, 'year');
same('order', rows($client, 'fox | dog', 'year'), '2 2500 2002; 3 2500 2002; 1 2500 2001');
$client->SetSortMode(SPH_SORT_RELEVANCE);

my @filters = (
    ['a value', sub { $client->SetFilter('year', [2002]) }, '2 2500; 3 2500'],
    ['a range that is left out', sub { $client->SetFilterRange('year', 2001, 2001, 1) }, '2 2500; 3 2500'],
    ['a range of floats', sub { $client->SetFilterFloatRange('price', 1, 2) }, '1 2500'],
    ['a text', sub { $client->SetFilterString('author', 'ann') }, '1 2500; 3 2500'],
    ['a value of a set', sub { $client->SetFilter('tags', [3]) }, '2 2500; 3 2500'],
);
for my $filter (@filters) {
    my ($what, $set, $expected) = @$filter;
    $set->();
    same($what, rows($client, 'fox | dog'), $expected);
    $client->ResetFilters;
}

$client->SetGroupBy('year', SPH_GROUPBY_ATTR, '@count desc');
same('groups', rows($client, 'fox | dog', '@groupby', '@count'), '2 2500 2002 2; 1 2500 2001 1');
$client->SetGroupBy('tags', SPH_GROUPBY_ATTR, '@group asc');
$client->SetGroupDistinct('author');
same('groups of a set', rows($client, 'fox | dog', '@groupby', '@count', '@distinct'),
    '1 2500 1 1 1; 1 2500 2 2 2; 2 2500 3 2 2');
$client->ResetGroupBy;

$client->SetSelect('*, year*2 AS twice');
same('a select list', rows($client, '@title fox', 'twice'), '1 1500 4002; 2 1500 4004');
$client->SetSelect('*');
$client->SetRankingMode(SPH_RANK_EXPR, 'sum(lcs*user_weight)');
same('a ranking expression', rows($client, '"quick brown"'), '1 2');
$client->SetRankingMode(SPH_RANK_PROXIMITY_BM25);
$client->SetFieldWeights({ title => 10 });
same('weights', rows($client, 'fox'), '1 11500; 2 11500');
$client->SetFieldWeights({});
$client->SetOuterSelect('price desc', 0, 2);
my $outer = $client->Query('fox | dog', 'articles') or die $client->GetLastError;
same('an outer select', join(' ', map { $_->{doc} } @{ $outer->{matches} }), '3 2');
$client->ResetOuterSelect;
$client->SetIDRange(2, 3);
same('a range of keys', rows($client, ''), '2 1; 3 1');

$client = client();
$client->AddQuery('fox', 'articles');
$client->AddQuery('dog', 'articles');
my $answers = $client->RunQueries or die $client->GetLastError;
same('several queries', join(' ', map { $_->{total_found} } @$answers), '2 2');
same('words', "$answers->[0]{words}{fox}{docs} $answers->[0]{words}{fox}{hits}", '2 4');

for my $wrong (['@nofield x', 'articles', 'field'], ['x', 'nowhere', 'nowhere']) {
    my ($query, $index, $named) = @$wrong;
    my $answer = $client->Query($query, $index);
    die "$query in $index: no error\n" if $answer && !$client->GetLastError;
    die "$query in $index: " . $client->GetLastError . "\n" unless $client->GetLastError =~ /$named/;
}

my $excerpts = $client->BuildExcerpts(['the quick brown fox jumps'], 'articles', 'fox',
    { before_match => '[', after_match => ']' }) or die $client->GetLastError;
same('excerpts', $excerpts->[0], 'the quick brown [fox] jumps');
my $keywords = $client->BuildKeywords('the Fox', 'articles', 1) or die $client->GetLastError;
same('keywords', join(' ', map { "$_->{normalized}:$_->{docs}" } @$keywords), 'the:2 fox:2');

same('an update', scalar $client->UpdateAttributes('articles', ['year'], { 1 => [2010] }), 1);
# The client sends the first value where the number of values belongs, so here they are the same.
same('an update of a set', scalar $client->UpdateAttributes('articles', ['tags'], { 1 => [[2, 8]] }, 1), 1);
die $client->GetLastError unless $client->Open;
for (1, 2) {
    same('a kept connection', rows($client, 'quick', 'year', 'tags'), '1 1680 2010 [2,8]');
}
$client->Close;
my $status = $client->Status or die $client->GetLastError;
die "no status\n" unless %$status;
print "ok\n";
