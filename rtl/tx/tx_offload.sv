// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Decides what becomes of each frame in the landing RAM, from its virtio header: passed on as it
// is, with a sum to be completed, cut into segments, or dropped. What is to be done goes to
// tx_stream as jobs, in order (virtio 1.3, "Packet Transmission" of the network device).
//
// A frame that stays whole waits until all of it is there. One that is cut up is used while it
// arrives: a segment is begun when its last byte is there and one more, or the frame's end. Of the
// virtio header only flags, gso_type, gso_size and, without segmentation, csum_start and
// csum_offset are used; where the headers are and how long, tx_header finds out.
//
// Throughput: a frame in five cycles (six at 64 bits, where its header is two words; one more if a
// sum is to be completed), or the time tx_stream takes; a segment in about 16. A header is read
// from the RAM before tx_stream's reads.
//
// Invariant: what the jobs of a frame free is the space of the frame.
`include "ferronic_assert.svh"
module tx_offload
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned AddrW = $clog2(RamBytes / Lanes)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             fn_rst_i,
  input  tx_offload_t      offload_i,
  output logic             idle_o,

  // Frames: the oldest that is whole, otherwise what is there of the next.
  input  logic             frame_valid_i,
  output logic             frame_ready_o,
  input  tx_frame_t        frame_i,
  input  qid_t             part_q_i,
  input  tx_len_t          part_i,
  input  logic             part_bad_i,

  // Landing RAM: the first words of a frame.
  output logic             ram_re_o,
  output logic [AddrW-1:0] ram_raddr_o,
  input  logic [DataW-1:0] ram_rdata_i,

  output logic             job_valid_o,
  input  logic             job_ready_i,
  output tx_job_t          job_o,
  input  logic             loading_i,   // a load is on its way
  input  logic             hdr_busy_i,  // the header RAM is being read

  // tx_header.
  input  logic             hdr_idle_i,
  output logic             parse_o,
  output logic             update_o,
  output logic [13:0]      bytes_o,
  output logic             first_o,
  output logic             last_o,
  input  logic             ok_i,
  input  hdr_layout_t      layout_i,
  input  logic [7:0]       hdr_len_i,

  // Headers beside those that came from the host.
  output logic             extra_o,
  output qid_t             extra_q_o,
  output logic [7:0]       extra_bytes_o,
  output frame_event_t     event_o,
  output logic             drop_short_o,
  output logic             drop_long_o,
  output logic             drop_offload_o,
  output logic             drop_read_o,
  output logic             drop_other_o
);
  // virtio_net_hdr.gso_type (virtio 1.3, "Device Operation" of the network device).
  localparam logic [6:0] GsoNone = 7'd0, GsoTcp4 = 7'd1, GsoTcp6 = 7'd4, GsoUdp = 7'd5;
  // So much of a frame holds its virtio header and all others.
  localparam int unsigned PartBytes = 256;

  typedef enum logic [4:0] {
    StIdle  = 5'd0,
    StHead  = 5'd1,  // the header's first word is there
    StHead2 = 5'd2,  // its second
    StLook  = 5'd3,  // how much of the frame is there
    StJudge = 5'd4,
    StLoad  = 5'd5,
    StParse = 5'd6,
    StFound = 5'd7,
    StMore  = 5'd8,  // how much, for the next segment
    StCut   = 5'd9,
    StFit   = 5'd10,
    StWrite = 5'd11, // its header
    StSend  = 5'd12,
    StDrop  = 5'd13, // how much there is to be dropped
    StFree  = 5'd14,
    StRead  = 5'd15,
    StSum   = 5'd16  // is the place of the sum in the frame?
  } st_e;
  st_e              st_q;
  logic [AddrW-1:0] base_q;      // the frame's first word
  tx_len_t          avail_q;     // bytes that are there
  logic             whole_q;     // that is all
  logic             bad_q;       // and it is no good
  tx_len_t          pos_q;       // where in the frame the next payload begins
  tx_len_t          next_q;
  tx_len_t          rem_q;       // bytes behind `pos_q`
  logic [15:0]      ptr_q;       // RAM address of `pos_q` less the headers
  logic [13:0]      freed_q;     // words of the frame
  tx_kind_e         kind_q;      // why it is dropped

  logic             needs_csum_q, ecn_q;
  logic [6:0]       gso_q;
  logic [15:0]      gso_size_q, csum_start_q, csum_offset_q;
  logic [13:0]      cut_q;       // gso_size, or more than may be sent
  logic [16:0]      csum_at_q;
  logic [13:0]      n_q;         // payload of the segment
  logic [14:0]      total_q;     // with its headers
  logic             first_q, last_q;

  function automatic logic [13:0] words_of(tx_len_t len);
    return 14'(len >> LaneW) + 14'(|len[LaneW-1:0]);
  endfunction

  wire tx_len_t avail = frame_valid_i ? frame_i.len : part_i;
  wire          ill   = frame_valid_i ? (frame_i.kind != TxOk) : part_bad_i;
  wire          begins = frame_valid_i || part_bad_i || |(part_i >> $clog2(PartBytes));
  // Not with the cycle in which it is taken: that is known late.
  wire          job_free = !job_valid_o;

  // ---------------------------------------------------------------- verdicts
  // Each is worked out before it is asked for.
  logic         plain_q, too_long_q, csum_bad_q, can_cut_q;
  wire          csum_fits = (csum_at_q + 17'd1 < rem_q);
  wire          tcp4      = (gso_q == GsoTcp4) && offload_i.tso4;
  wire          tcp6      = (gso_q == GsoTcp6) && offload_i.tso6;
  wire          uso       = (gso_q == GsoUdp) && offload_i.uso;
  wire          can_cut   = (tcp4 || tcp6 || uso) && (!ecn_q || (offload_i.ecn && !uso)) &&
                            (gso_size_q != '0);
  wire          agrees    = (layout_i.udp == (gso_q == GsoUdp)) &&
                            (layout_i.udp || layout_i.v6 == (gso_q == GsoTcp6));
  wire          fits      = ({9'd0, hdr_len_i} <= rem_q);

  always_ff @(posedge clk_i) begin
    if (st_q == StLook) begin
      plain_q    <= (gso_q == GsoNone) && !ecn_q;
      too_long_q <= avail > tx_len_t'(MaxPlainBytes);
      can_cut_q  <= can_cut;
      csum_bad_q <= 1'b0;
    end
    if (st_q == StSum) csum_bad_q <= !(offload_i.csum && csum_fits);
  end

  wire judge_plain = (st_q == StJudge) && plain_q && !bad_q && whole_q && !too_long_q &&
                     !csum_bad_q;
  wire judge_cut   = (st_q == StJudge) && !plain_q && !bad_q && can_cut_q;
  wire judge_drop  = (st_q == StJudge) &&
                     (bad_q || (plain_q ? (too_long_q || (whole_q && csum_bad_q)) : !can_cut_q));
  wire more_now    = {3'd0, cut_q} < rem_q;           // a whole segment, and it is not the last
  wire send_plain  = judge_plain && job_free;
  wire send_load   = judge_cut && job_free;
  wire send_seg    = (st_q == StSend) && hdr_idle_i && job_free;
  wire send_free   = (st_q == StFree) && job_free;
  wire ends        = send_plain || (send_seg && last_q) || (send_free && whole_q);

  assign ram_re_o    = (st_q == StRead) || ((st_q == StHead) && DataW == 64);
  assign ram_raddr_o = base_q + AddrW'(st_q == StHead);
  assign frame_ready_o = ends;

  // ---------------------------------------------------------------- a frame's way
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q   <= StIdle;
      base_q <= '0;
    end else if (fn_rst_i) begin
      st_q   <= StIdle;
      base_q <= '0;
    end else begin
      unique case (st_q)
        StIdle: if (begins) st_q <= ill ? StDrop : StRead;
        StRead: st_q <= StHead;
        StHead: st_q <= (DataW == 64) ? StHead2 : StLook;
        StHead2: st_q <= StLook;
        StLook: st_q <= (needs_csum_q && frame_valid_i) ? StSum : StJudge;
        StSum: st_q <= StJudge;
        StJudge: begin
          if (judge_drop) st_q <= StDrop;
          else if (judge_plain) st_q <= job_free ? StIdle : StJudge;
          else if (judge_cut) st_q <= job_free ? StLoad : StJudge;
          else st_q <= StLook;
        end
        StLoad: if (!job_valid_o && !loading_i) st_q <= StParse;
        StParse: if (hdr_idle_i && !parse_o) st_q <= StFound;
        StFound: st_q <= (ok_i && agrees && fits) ? StMore : StDrop;
        StMore: st_q <= StCut;
        StCut: begin
          if (bad_q) st_q <= StDrop;
          else st_q <= (more_now || whole_q) ? StFit : StMore;
        end
        StFit: if (total_q > 15'(MaxFrameBytes)) st_q <= StDrop;
               else if (update_o) st_q <= StWrite;
        StWrite: st_q <= StSend;
        StSend: if (send_seg) st_q <= last_q ? StIdle : StMore;
        StDrop: st_q <= StFree;
        StFree: if (job_free) st_q <= whole_q ? StIdle : StDrop;
        default: st_q <= StIdle;
      endcase
      if (ends) base_q <= base_q + AddrW'(words_of(avail_q));
    end
  end

  assign parse_o  = (st_q == StLoad) && !job_valid_o && !loading_i;
  // The header of the segment before must have been read.
  assign update_o = (st_q == StFit) && !hdr_busy_i && !job_valid_o &&
                    (total_q <= 15'(MaxFrameBytes));
  assign bytes_o  = n_q;
  assign first_o  = first_q;
  assign last_o   = last_q;

  if (DataW == 64) begin : g_two_words
    always_ff @(posedge clk_i) if (st_q == StHead2) csum_offset_q <= ram_rdata_i[15:0];
  end else begin : g_one_word
    always_ff @(posedge clk_i) if (st_q == StHead) csum_offset_q <= ram_rdata_i[79:64];
  end

  always_ff @(posedge clk_i) begin
    if (st_q == StHead) begin
      needs_csum_q <= ram_rdata_i[0];
      {ecn_q, gso_q} <= ram_rdata_i[15:8];
      gso_size_q   <= ram_rdata_i[47:32];
      csum_start_q <= ram_rdata_i[63:48];
    end
    if (st_q == StIdle) begin
      kind_q   <= TxOffload;
      pos_q    <= tx_len_t'(VirtioHdrBytes);
      ptr_q    <= (16'(base_q) << LaneW) + 16'(VirtioHdrBytes);
      freed_q  <= '0;
      first_q  <= 1'b1;
    end
    // What is there may become more at any time, but never less.
    if (st_q == StLook || st_q == StMore || st_q == StDrop) begin
      avail_q <= avail;
      whole_q <= frame_valid_i;
      bad_q   <= ill;
      rem_q   <= avail - pos_q;
    end
    if (st_q == StLook) begin
      csum_at_q <= {1'b0, csum_start_q} + {1'b0, csum_offset_q};
      cut_q     <= (gso_size_q > 16'(MaxFrameBytes)) ? 14'(MaxFrameBytes) : gso_size_q[13:0];
    end
    if (judge_drop && plain_q && too_long_q) kind_q <= TxLong;
    if (st_q == StFound) pos_q <= pos_q + {9'd0, hdr_len_i};
    if (st_q == StCut) begin
      n_q     <= more_now ? cut_q : rem_q[13:0];
      last_q  <= !more_now;
      total_q <= (more_now ? {1'b0, cut_q} : {1'b0, rem_q[13:0]}) + {7'd0, hdr_len_i};
    end
    if (st_q == StFit) begin
      next_q <= pos_q + {3'd0, n_q};
      if (total_q > 15'(MaxFrameBytes)) kind_q <= TxLong;
    end
    if (send_seg) begin
      pos_q   <= next_q;
      ptr_q   <= ptr_q + {2'd0, n_q};
      freed_q <= 14'(next_q >> LaneW);
      first_q <= 1'b0;
    end
    if (send_free) freed_q <= 14'(avail_q >> LaneW);
    if (st_q == StDrop && frame_valid_i && frame_i.kind != TxOk) kind_q <= frame_i.kind;
  end

  // ---------------------------------------------------------------- jobs
  wire qid_t        q = frame_valid_i ? frame_i.q : part_q_i;
  wire tx_len_t     upto = (st_q == StSend) ? next_q : avail_q;
  wire [13:0]       upto_words = ends ? words_of(upto) : 14'(upto >> LaneW);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) job_valid_o <= 1'b0;
    else if (fn_rst_i) job_valid_o <= 1'b0;
    else if (send_plain || send_load || send_seg || send_free) job_valid_o <= 1'b1;
    else if (job_ready_i) job_valid_o <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (job_free) begin
      job_o.q          <= q;
      job_o.empty      <= (st_q == StFree);
      job_o.load       <= (st_q == StJudge) && !plain_q;
      job_o.hdr_len    <= (st_q == StSend) ? hdr_len_i : '0;
      job_o.ptr        <= ptr_q;
      job_o.csum       <= (st_q == StSend) || needs_csum_q;
      job_o.udp        <= (st_q == StSend) ? layout_i.udp : (csum_offset_q == 16'd6);
      job_o.csum_start <= (st_q == StSend) ? {6'd0, layout_i.l4_at, 1'b0} : csum_start_q[13:0];
      job_o.csum_at    <= (st_q == StSend) ? {6'd0, layout_i.l4_at, 1'b0} +
                                             (layout_i.udp ? 14'd6 : 14'd16) : csum_at_q[13:0];
      job_o.free       <= (st_q == StJudge && !plain_q) ? '0 : 13'(upto_words - freed_q);
      if (st_q == StSend) job_o.len <= total_q[13:0];
      else if (plain_q) job_o.len <= rem_q[13:0];
      else job_o.len <= (rem_q > tx_len_t'(TxHdrBytes)) ? 14'(TxHdrBytes) : rem_q[13:0];
    end
  end

  // ---------------------------------------------------------------- events
  logic     event_valid_q, event_drop_q;
  tx_kind_e event_kind_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) event_valid_q <= 1'b0;
    else event_valid_q <= send_plain || send_seg || (send_free && whole_q);
  end
  assign extra_o       = send_seg && !first_q;
  assign extra_q_o     = q;
  assign extra_bytes_o = hdr_len_i;
  always_ff @(posedge clk_i) begin
    event_o.q     <= q;
    event_o.bytes <= (st_q == StSend) ? {2'b00, total_q[13:0]} : {2'b00, rem_q[13:0]};
    event_drop_q  <= (st_q == StFree);
    event_kind_q  <= kind_q;
  end
  assign event_o.valid  = event_valid_q;
  assign event_o.drop   = event_drop_q;
  wire   dropped        = event_valid_q && event_drop_q;
  assign drop_short_o   = dropped && (event_kind_q == TxShort);
  assign drop_long_o    = dropped && (event_kind_q == TxLong);
  assign drop_offload_o = dropped && (event_kind_q == TxOffload);
  assign drop_read_o    = dropped && (event_kind_q == TxRead);
  assign drop_other_o   = dropped && (event_kind_q == TxOther);

  assign idle_o = (st_q == StIdle) && !frame_valid_i && !job_valid_o && !event_valid_q;

  // hdr_len is a hint that may be wrong.
  logic unused;
  assign unused = ^{ram_rdata_i, layout_i};

  `FERRONIC_ASSERT_STABLE(JobStable, job_valid_o, job_ready_i || fn_rst_i, job_o, clk_i, rst_ni)
  `FERRONIC_ASSERT(FreesNoMore, !job_valid_o || {1'b0, job_o.free} <= 14'(RamBytes / Lanes),
                   clk_i, rst_ni)
endmodule
