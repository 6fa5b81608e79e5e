/* Logs a few records from C. */
#include <stdio.h>

#include "tampu_log.h"

int main(void) {
    tampu_logger *logger = tampu_log_open("CONTROL/DV01");
    if (logger == NULL) {
        fprintf(stderr, "hello: %s\n", tampu_log_last_error());
        return 1;
    }
    tampu_logger *mount = tampu_log_named(logger, "mount");
    tampu_logger *drive = tampu_log_for_object(mount, "CONTROL/DV01/Mount/AzDrive");

    tampu_log_write(logger, TAMPU_LOG_NOTICE, __FILE__, __LINE__, __func__, "a text with {braces} and 100 % of itself");
    TAMPU_LOG_PRINTF(drive, TAMPU_LOG_INFO, "az %.3f el %.3f of %s", 269.9, 45.0, "DV01");
    TAMPU_LOG_PRINTF(mount, TAMPU_LOG_TRACE, "nobody asked for this");

    tampu_log_close(drive);
    tampu_log_close(mount);
    tampu_log_close(logger);
    return 0;
}
