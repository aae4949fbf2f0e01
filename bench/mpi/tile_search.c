/* States of the 15-puzzle by breadth-first search with messages: the other whole job of MR-Search (slide 10).

       mpicc -O3 -march=native -o tile_search tile_search.c && mpirun -n 4 tile_search DEPTH

   A state belongs to a rank by its hash. At each depth every rank moves the blank of its states in all ways, sends each
   result to its rank, and drops what it was sent twice or knew two moves ago. Prints `depth TAB states`, and
   `seconds TAB time` between MPI_Init and MPI_Finalize. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t *states;
    size_t length, capacity;
} List;

static void push(List *list, uint64_t state) {
    if (list->length == list->capacity) list->states = realloc(list->states, (list->capacity = list->capacity * 2 + 64) * 8);
    list->states[list->length++] = state;
}

/* A table with open addressing of at least twice as many places as states; no state is 0. */
typedef struct {
    uint64_t *places;
    size_t mask;
} Set;

static uint64_t mixed(uint64_t state) { return state * 0x9e3779b97f4a7c15u; }

static Set set_for(size_t states) {
    size_t places = 64;
    while (places < 2 * states) places *= 2;
    return (Set){calloc(places, 8), places - 1};
}

static size_t place(const Set *set, uint64_t state) {
    size_t at = mixed(state) >> 20 & set->mask;
    while (set->places[at] && set->places[at] != state) at = (at + 1) & set->mask;
    return at;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double start = MPI_Wtime();
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int depths = argc == 2 ? atoi(argv[1]) : -1;
    if (depths < 0) {
        if (rank == 0) fprintf(stderr, "usage: mpirun -n RANKS tile_search DEPTH\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
#define OWNER(state) ((int)((mixed(state) >> 44) * ranks >> 20))
    /* Sixteen tiles of four bits, the first square in the lowest bits; 0 is the blank. */
    const uint64_t first = 0x0fedcba987654321;
    List last = {0}, *to = calloc(ranks, sizeof(List));
    Set before = set_for(0), known = set_for(1);
    if (OWNER(first) == rank) push(&last, first), known.places[place(&known, first)] = first;
    if (rank == 0) printf("0\t1\n");
    int *sizes = calloc(ranks, sizeof(int)), *got = calloc(ranks, sizeof(int));
    int *sent_at = calloc(ranks + 1, sizeof(int)), *got_at = calloc(ranks + 1, sizeof(int));
    for (int depth = 1; depth <= depths; depth++) {
        for (int r = 0; r < ranks; r++) to[r].length = 0;
        for (size_t i = 0; i < last.length; i++) {
            uint64_t state = last.states[i], nibbles = state | state >> 1 | state >> 2 | state >> 3;
            int blank = __builtin_ctzll(~nibbles & 0x1111111111111111) / 4;
            int ways[4] = {blank >= 4 ? -4 : 0, blank < 12 ? 4 : 0, blank % 4 > 0 ? -1 : 0, blank % 4 < 3 ? 1 : 0};
            for (int w = 0; w < 4; w++)
                if (ways[w]) {
                    int square = blank + ways[w];
                    uint64_t tile = state >> 4 * square & 15, next = (state ^ tile << 4 * square) | tile << 4 * blank;
                    push(&to[OWNER(next)], next);
                }
        }
        for (int r = 0; r < ranks; r++) sizes[r] = to[r].length;
        MPI_Alltoall(sizes, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) sent_at[r + 1] = sent_at[r] + sizes[r], got_at[r + 1] = got_at[r] + got[r];
        uint64_t *sent = malloc(8 * (size_t)sent_at[ranks] + 8), *received = malloc(8 * (size_t)got_at[ranks] + 8);
        for (int r = 0; r < ranks; r++)
            if (sizes[r]) memcpy(sent + sent_at[r], to[r].states, 8 * (size_t)sizes[r]);
        MPI_Alltoallv(sent, sizes, sent_at, MPI_UINT64_T, received, got, got_at, MPI_UINT64_T, MPI_COMM_WORLD);
        /* A move changes the colour of the blank's square, so no state of the last depth can reappear. */
        Set next = set_for(got_at[ranks]);
        last.length = 0;
        for (int i = 0; i < got_at[ranks]; i++) {
            size_t at = place(&next, received[i]);
            if (next.places[at] || before.places[place(&before, received[i])]) continue;
            next.places[at] = received[i];
            push(&last, received[i]);
        }
        free(sent), free(received), free(before.places);
        before = known, known = next;
        unsigned long long states = last.length, all;
        MPI_Reduce(&states, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%d\t%llu\n", depth, all);
    }
    if (rank == 0) printf("seconds\t%.4f\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
