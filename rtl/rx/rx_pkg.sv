// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Types of the receive path.
package rx_pkg;
  import ferronic_pkg::*;

  // What follows a write of the receive path, or a frame that needs none.
  typedef struct packed {
    logic        cmd;       // wait for a write to be done
    logic        used;      // then this used entry
    logic        publish;
    logic        frame_end; // and the frame is over
    logic        scratch;   // nothing is needed of the scratch any more
    logic        drop;
    qid_t        q;
    logic [15:0] id;
    logic [16:0] len;       // used length
    logic [13:0] frame_len;
  } rx_token_t;

  // Eight bits that all depend on about half of the hash: CRC-8, polynomial 0x07, and eight zeros
  // behind the hash, so that its last bits reach all of them too.
  function automatic logic [7:0] mix(input logic [15:0] hash);
    logic [7:0] crc;
    crc = 8'h00;
    for (int i = 15; i >= -8; i--) begin
      crc = {crc[6:0], 1'b0} ^ ((crc[7] ^ ((i >= 0) && hash[i & 15])) ? 8'h07 : 8'h00);
    end
    return crc;
  endfunction

  // The pair of a flow with these bits.
  function automatic logic [5:0] scaled_pair(input logic [7:0] bits, input logic [6:0] pairs);
    scaled_pair = 6'((15'(bits) * 15'(pairs)) >> 8);
  endfunction
endpackage
