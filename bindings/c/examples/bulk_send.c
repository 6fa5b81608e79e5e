/* Sends a pattern of BYTES bytes: bulk_send BYTES [TARGET [WAIT_MS]]. Without a target it sends to a receiver on the bus. */
#include <stdio.h>
#include <stdlib.h>

#include "bulk_pattern.h"
#include "tampu_bulk.h"

#define BLOCK (1 << 20)

static int failed(void) {
    fprintf(stderr, "bulk_send: %s\n", tampu_bulk_last_error());
    return 1;
}

static int transfer(const tampu_bulk_sender *sender, uint64_t bytes) {
    static unsigned char block[BLOCK];
    static const char parameter[] = "uid://A002/X1";
    if (tampu_bulk_start(sender, parameter, sizeof parameter - 1) != 0) {
        return failed();
    }
    for (uint64_t offset = 0; offset < bytes; offset += BLOCK) {
        const size_t length = bytes - offset < BLOCK ? (size_t)(bytes - offset) : BLOCK;
        bulk_pattern(block, offset, length);
        if (tampu_bulk_send(sender, block, length) != 0) {
            const int code = failed();
            tampu_bulk_reset(sender);
            return code;
        }
    }
    tampu_bulk_report report;
    if (tampu_bulk_stop(sender, &report, sizeof report) != 1) {
        return failed();
    }
    printf("sent %llu to %u of %u\n", (unsigned long long)report.bytes, report.complete, report.receivers);
    return 0;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: bulk_send BYTES [TARGET [WAIT_MS]]\n");
        return 2;
    }
    const char *target = count > 2 ? arguments[2] : NULL;
    tampu_bulk_participant *me =
        target == NULL ? tampu_bulk_join("CORR/CORRELATOR") : tampu_bulk_alone("demo", "CORR/CORRELATOR");
    if (me == NULL) {
        return failed();
    }
    const uint32_t wait_ms = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 30000;
    const tampu_bulk_send_settings settings = {.transport = target == NULL ? TAMPU_BULK_AUTO : TAMPU_BULK_TCP};
    tampu_bulk_sender *sender = tampu_bulk_sender_open(me, "correlator", "spectra", &settings, sizeof settings);
    int code = 1;
    if (sender == NULL || (target == NULL ? tampu_bulk_sender_follow(sender) : tampu_bulk_sender_connect(sender, target)) != 0) {
        failed();
    } else if (tampu_bulk_sender_wait(sender, 1, wait_ms) != 1) {
        failed();
    } else {
        code = transfer(sender, strtoull(arguments[1], NULL, 10));
    }
    tampu_bulk_sender_close(sender);
    tampu_bulk_leave(me);
    return code;
}
