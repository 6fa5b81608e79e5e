/* Receives one transfer and compares it with the pattern of bulk_send: bulk_recv [alone]. Prints its target first; alone it is not on the bus. */
#include <semaphore.h>
#include <stdio.h>

#include "bulk_pattern.h"
#include "tampu_bulk.h"

/* Received data so far. Callbacks of a receiver run one at a time; `over` hands the data back to the main thread. */
struct taken {
    uint64_t bytes, wrong, lost;
    int complete;
    sem_t over;
};

static int32_t start(void *context, const tampu_bulk_transfer_start *start) {
    struct taken *taken = context;
    taken->bytes = taken->wrong = taken->lost = 0;
    printf("start %.*s from %s\n", (int)start->length, (const char *)start->parameter, start->sender);
    return TAMPU_BULK_OK;
}

static int32_t data(void *context, const tampu_bulk_piece *data) {
    struct taken *taken = context;
    const unsigned char *bytes = data->bytes;
    if (taken->bytes == 0) {
        printf("data\n");
        fflush(stdout);
    }
    for (size_t at = 0; at < data->length; ++at) {
        taken->wrong += bytes[at] != bulk_pattern_at(data->offset + at);
    }
    taken->bytes += data->length;
    if (taken->wrong != 0) {
        tampu_bulk_explain("this is not the pattern");
        return TAMPU_BULK_GIVE_UP;
    }
    return TAMPU_BULK_OK;
}

static void lost(void *context, const tampu_bulk_lost_range *lost) {
    struct taken *taken = context;
    taken->lost += lost->to == UINT64_MAX ? 1 : lost->to - lost->from;
    fprintf(stderr, "bulk_recv: lost from %llu on: %s\n", (unsigned long long)lost->from, lost->why);
}

static void fault(void *context, const tampu_bulk_fault_note *fault) {
    (void)context;
    fprintf(stderr, "bulk_recv: %s\n", fault->text);
}

static int32_t stop(void *context, const tampu_bulk_end *end) {
    struct taken *taken = context;
    taken->complete = end->complete && end->bytes == taken->bytes;
    sem_post(&taken->over);
    return TAMPU_BULK_OK;
}

int main(int count, char **arguments) {
    (void)arguments;
    struct taken taken = {0};
    sem_init(&taken.over, 0, 0);
    const tampu_bulk_handler handler = {
        .context = &taken,
        .start = start,
        .data = data,
        .stop = stop,
        .lost = lost,
        .fault = fault,
        .protection = TAMPU_BULK_PROTECTION_AUTO,
    };
    tampu_bulk_participant *me = count > 1 ? tampu_bulk_alone("demo", "ARCHIVE/BULK") : tampu_bulk_join("ARCHIVE/BULK");
    tampu_bulk_receiver *receiver = tampu_bulk_receiver_open(me, "correlator", "spectra", NULL, NULL, &handler, sizeof handler);
    if (receiver == NULL) {
        fprintf(stderr, "bulk_recv: %s\n", tampu_bulk_last_error());
        tampu_bulk_leave(me);
        return 1;
    }
    printf("target %s\n", tampu_bulk_receiver_target(receiver));
    fflush(stdout);
    while (sem_wait(&taken.over) != 0) {
    }
    /* Waits until the sender has the acknowledgement of the stop and disconnects. */
    tampu_bulk_receiver_part(receiver, 10000);
    tampu_bulk_receiver_close(receiver);
    tampu_bulk_leave(me);
    printf("received %llu, %llu wrong, %llu lost, %s\n", (unsigned long long)taken.bytes, (unsigned long long)taken.wrong,
           (unsigned long long)taken.lost, taken.complete ? "complete" : "incomplete");
    return taken.complete ? 0 : 1;
}
