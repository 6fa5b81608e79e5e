/** Sessions with a hub, for programs that are not on the bus. */
package org.tampu.gateway;
