/* Word count with messages: what MR-Search (slide 10) compares shared memory with, on a whole job.

       mpicc -O3 -march=native -o word_count word_count.c && mpirun -n 4 word_count FILE K

   Every rank counts the words that begin in its part of FILE, sends each other rank the words that it owns, and adds up
   what it was sent. A word starts with a letter, goes on with letters and apostrophes, and is upper-cased. Prints the K
   most frequent as `word TAB count`, equal ones by bytes, and `seconds TAB time` between MPI_Init and MPI_Finalize. */

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct {
    const char *word;
    uint32_t length, hash;
    uint64_t count;
} Entry;

/* A table with open addressing; its places are a power of two, and at most half of them are taken. */
typedef struct {
    Entry *entries;
    size_t places, taken;
} Table;

/* Where the bytes of words lie. */
static char *arena, *arena_end;

static char *keep(const char *bytes, size_t length) {
    if (arena_end - arena < (ptrdiff_t)length) {
        size_t size = length > 1 << 20 ? length : 1 << 20;
        arena = malloc(size);
        arena_end = arena + size;
    }
    char *kept = memcpy(arena, bytes, length);
    arena += length;
    return kept;
}

static void add(Table *table, const char *word, uint32_t length, uint32_t hash, uint64_t count) {
    if (2 * table->taken >= table->places) {
        Table larger = {calloc(table->places ? 2 * table->places : 4096, sizeof(Entry)), table->places ? 2 * table->places : 4096, table->taken};
        for (size_t i = 0; i < table->places; i++)
            if (table->entries[i].word) {
                size_t at = table->entries[i].hash & (larger.places - 1);
                while (larger.entries[at].word) at = (at + 1) & (larger.places - 1);
                larger.entries[at] = table->entries[i];
            }
        free(table->entries);
        *table = larger;
    }
    size_t at = hash & (table->places - 1);
    for (Entry *entry; (entry = &table->entries[at])->word; at = (at + 1) & (table->places - 1))
        if (entry->hash == hash && entry->length == length && !memcmp(entry->word, word, length)) {
            entry->count += count;
            return;
        }
    table->entries[at] = (Entry){keep(word, length), length, hash, count};
    table->taken++;
}

static int is_letter(unsigned char byte) { return (unsigned char)((byte | 32) - 'a') < 26; }
static int goes_on(unsigned char byte) { return is_letter(byte) || byte == '\''; }

/* Counts the words that begin in [from, to). */
static void map(Table *table, const char *text, size_t size, size_t from, size_t to) {
    size_t at = from;
    while (at > 0 && goes_on(text[at - 1])) at--;
    size_t capacity = 4096;
    char *word = malloc(capacity);
    while (at < to) {
        if (!is_letter(text[at])) {
            at++;
            continue;
        }
        size_t begin = at, length = 0;
        uint32_t hash = 2166136261u;
        for (; at < size && goes_on(text[at]); at++) {
            if (length == capacity) word = realloc(word, capacity *= 2);
            word[length] = is_letter(text[at]) ? text[at] & ~32 : text[at];
            hash = (hash ^ (unsigned char)word[length++]) * 16777619u;
        }
        if (begin >= from) add(table, word, length, hash, 1);
    }
    free(word);
}

static int by_count(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    int order = memcmp(x->word, y->word, x->length < y->length ? x->length : y->length);
    return order ? order : (int)x->length - (int)y->length;
}

/* Writes the chosen entries as count, length, hash, bytes. Returns the end. */
static char *write_entry(char *to, const Entry *entry) {
    memcpy(to, &entry->count, 8);
    memcpy(to + 8, &entry->length, 4);
    memcpy(to + 12, &entry->hash, 4);
    memcpy(to + 16, entry->word, entry->length);
    return to + 16 + entry->length;
}

/* Adds the written entries in [from, end) to a table. */
static void read_entries(Table *table, const char *from, const char *end) {
    while (from < end) {
        uint64_t count;
        uint32_t length, hash;
        memcpy(&count, from, 8);
        memcpy(&length, from + 8, 4);
        memcpy(&hash, from + 12, 4);
        add(table, from + 16, length, hash, count);
        from += 16 + length;
    }
}

/* Moves the entries to the front and sorts them. */
static void sort(Table *table) {
    size_t found = 0;
    for (size_t i = 0; i < table->places; i++)
        if (table->entries[i].word) table->entries[found++] = table->entries[i];
    qsort(table->entries, found, sizeof(Entry), by_count);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double start = MPI_Wtime();
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct stat status;
    int file = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &status)) {
        if (rank == 0) fprintf(stderr, "usage: mpirun -n RANKS word_count FILE K\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t size = status.st_size, k = strtoul(argv[2], NULL, 10);
    const char *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    size_t from = size * rank / ranks, to = size * (rank + 1) / ranks;
    /* One call for the page table of this part, instead of a fault for each few pages of it. */
    madvise((void *)((uintptr_t)(text + from) & -4096), to - from, MADV_POPULATE_READ);
    Table counted = {0}, owned = {0};
    map(&counted, text, size, from, to);

    /* The high bits of a hash say who owns a word, the low ones where it lies in a table. */
    int *sizes = calloc(ranks, sizeof(int)), *sent_at = calloc(ranks + 1, sizeof(int)), *got_at = calloc(ranks + 1, sizeof(int));
    int *got = calloc(ranks, sizeof(int));
#define OWNER(hash) ((int)((uint64_t)(hash) * ranks >> 32))
    for (size_t i = 0; i < counted.places; i++)
        if (counted.entries[i].word) sizes[OWNER(counted.entries[i].hash)] += 16 + counted.entries[i].length;
    MPI_Alltoall(sizes, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) sent_at[r + 1] = sent_at[r] + sizes[r], got_at[r + 1] = got_at[r] + got[r];
    char *sent = malloc(sent_at[ranks] + 1), *received = malloc(got_at[ranks] + 1), **ends = malloc(ranks * sizeof(char *));
    for (int r = 0; r < ranks; r++) ends[r] = sent + sent_at[r];
    for (size_t i = 0; i < counted.places; i++) {
        Entry *entry = &counted.entries[i];
        if (entry->word) ends[OWNER(entry->hash)] = write_entry(ends[OWNER(entry->hash)], entry);
    }
    MPI_Alltoallv(sent, sizes, sent_at, MPI_CHAR, received, got, got_at, MPI_CHAR, MPI_COMM_WORLD);
    read_entries(&owned, received, received + got_at[ranks]);

    /* The first rank chooses from the most frequent words of each. */
    sort(&owned);
    size_t chosen = k < owned.taken ? k : owned.taken, bytes = 0;
    for (size_t i = 0; i < chosen; i++) bytes += 16 + owned.entries[i].length;
    char *best = malloc(bytes + 1), *end = best;
    for (size_t i = 0; i < chosen; i++) end = write_entry(end, &owned.entries[i]);
    int best_size = bytes;
    MPI_Gather(&best_size, 1, MPI_INT, got, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) got_at[r + 1] = got_at[r] + got[r];
    char *all = rank == 0 ? malloc(got_at[ranks] + 1) : NULL;
    MPI_Gatherv(best, best_size, MPI_CHAR, all, got, got_at, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        Table table = {0};
        read_entries(&table, all, all + got_at[ranks]);
        sort(&table);
        for (size_t i = 0; i < k && i < table.taken; i++)
            printf("%.*s\t%llu\n", (int)table.entries[i].length, table.entries[i].word, (unsigned long long)table.entries[i].count);
        printf("seconds\t%.4f\n", MPI_Wtime() - start);
    }
    MPI_Finalize();
    return 0;
}
