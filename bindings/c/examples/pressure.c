/* A server with one attribute, and a client in the same program that waits for its events. */
#include <stdio.h>

#include "tampu_event.h"

int main(void) {
    tampu_event_server *server = tampu_event_server_open("vacuum");
    tampu_event_client *client = tampu_event_client_open("panel");
    const char *name = "sr/vacuum/c01-1/pressure";
    tampu_event_queue *events = tampu_event_queue_open(client, &name, 1, NULL, 0, 1000);
    tampu_event_config config = {0};
    config.name = name;
    config.data_type = TAMPU_EVENT_DOUBLE;
    config.unit = "mbar";
    config.change_rel = "5";
    tampu_event_attribute *pressure = tampu_event_declare(server, &config, sizeof config);
    if (events == NULL || pressure == NULL || tampu_event_push_double(pressure, 1.2e-9) < 0) {
        fprintf(stderr, "pressure: %s\n", tampu_event_last_error());
        return 1;
    }
    for (int told = 0; told < 2;) {
        tampu_event event;
        if (tampu_event_queue_next(events, 30000, &event, sizeof event) != 1) {
            fprintf(stderr, "pressure: no event within 30 s\n");
            return 1;
        }
        if (event.value != NULL) {
            printf("%s: %g %s\n", event.attribute, *(const double *)event.value->data, event.unit);
            told++;
            tampu_event_push_double(pressure, 1.4e-9);
        }
    }
    tampu_event_queue_close(events);
    tampu_event_client_close(client);
    tampu_event_withdraw(pressure);
    tampu_event_server_close(server);
    return 0;
}
