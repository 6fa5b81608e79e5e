/**
 * Log records of this process. {@link org.tampu.log.Logger} is the direct way; {@link org.tampu.log.TampuHandler} takes
 * the records of {@code java.util.logging}.
 */
package org.tampu.log;
